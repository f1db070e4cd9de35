# CMake reads this file through the environment variable CMAKE_TOOLCHAIN_FILE, so Horovod's source package needs no
# patch. It only arranges that project.cmake runs right after Horovod's own project() line.
set(CMAKE_PROJECT_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/project.cmake")
