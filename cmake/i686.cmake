# Toolchain: 32-bit x86 on Linux. Programs are linked statically, so they run on any x86-64 kernel.
# SSE2, since the x87 unit keeps more bits than a float has.
set(CMAKE_SYSTEM_PROCESSOR i686)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
set(CMAKE_C_FLAGS_INIT "-msse2 -mfpmath=sse")
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
