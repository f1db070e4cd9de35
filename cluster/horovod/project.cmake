# Horovod 0.28.1 asks for C++14 in several places; torch's headers since 2.12 need C++20. Redefining what "C++14" means
# to the compiler is the one change that reaches every target.
set(CMAKE_CXX14_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CXX14_EXTENSION_COMPILE_OPTION "-std=gnu++20")

# No debug information: it doubles the compile time of torch's headers and nobody debugs this build.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -DNDEBUG")

# A CPU Horovod also against a CUDA build of torch on a machine that has an nvcc: see modules/FindPytorch.cmake.
if(NOT DEFINED ENV{HOROVOD_GPU_OPERATIONS})
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/modules")
endif()
