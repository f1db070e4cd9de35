# Reports torch to Horovod's build as a CPU library. Horovod's own finder asks torch for a CUDA extension as soon as an
# nvcc is found, which then needs the CUDA headers of exactly torch's version; a build for Gloo or MPI needs none of it.
execute_process(
  COMMAND ${PY_EXE} -c "
import torch
from torch.utils import cpp_extension
print(torch.__version__)
print(';'.join(cpp_extension.include_paths()))
print(';'.join(cpp_extension.library_paths()))
print(int(torch.compiled_with_cxx11_abi()))
"
  OUTPUT_VARIABLE torch_facts
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
# One fact a line; the semicolons inside a line must survive until each line has been cut out.
string(REGEX MATCH "^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$" _ "${torch_facts}")
set(Pytorch_VERSION "${CMAKE_MATCH_1}")
set(Pytorch_INCLUDE_DIRS "${CMAKE_MATCH_2}")
set(Pytorch_LIBRARY_DIRS "${CMAKE_MATCH_3}")
set(torch_cxx11_abi "${CMAKE_MATCH_4}")

set(Pytorch_LIBRARIES "")
foreach(name c10 torch torch_cpu torch_python)
  find_library(Pytorch_${name} NAMES ${name} PATHS ${Pytorch_LIBRARY_DIRS} NO_DEFAULT_PATH REQUIRED)
  list(APPEND Pytorch_LIBRARIES "${Pytorch_${name}}")
endforeach()

set(Pytorch_COMPILE_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=${torch_cxx11_abi}")
if(torch_cxx11_abi)
  set(Pytorch_CXX11 TRUE)
else()
  set(Pytorch_CXX11 FALSE)
endif()
set(Pytorch_CUDA FALSE)
set(Pytorch_ROCM FALSE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pytorch REQUIRED_VARS Pytorch_LIBRARIES VERSION_VAR Pytorch_VERSION)
