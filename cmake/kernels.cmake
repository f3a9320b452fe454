# The kernel sources are compiled once per instruction set: a new set is a header in simd/, a row here, a row in cpu/levels.c.
#   name         header         flags
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(arenite_isas
        "avx2        avx2.h     -mavx2 -mfma -mf16c -mbmi2"
        "avx512      avx512.h   -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl"
        "vnni        avx512.h   -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(arenite_isas
        "neon        neon.h     -march=armv8-a"
        "dotprod     neon.h     -march=armv8.2-a+dotprod")
endif()

if(ARENITE_SANITIZE AND EXISTS /proc/cpuinfo AND NOT CMAKE_CROSSCOMPILING)  # instrumented code that this machine cannot run proves nothing
    file(STRINGS /proc/cpuinfo cpu_flags LIMIT_COUNT 1 REGEX "^flags")
    if(cpu_flags AND NOT cpu_flags MATCHES "avx512vl")
        list(FILTER arenite_isas EXCLUDE REGEX "avx512")
    endif()
endif()

# Adds the kernels to the object library `target` and sets kernel_objects to what else a library must hold.
# The tiles of the products are written so that all sums stay in registers: two passes of gcc would take them apart, one would copy
# them around each step of a loop, two others copy everything around them for each type.
include(CheckCCompilerFlag)
set(arenite_tile_flags -fno-tree-reassoc -fno-tree-ter -fno-tree-coalesce-vars -fno-ipa-cp -fno-inline-functions)
string(REPLACE ";" " " flags "${arenite_tile_flags}")
check_c_compiler_flag("${flags}" ARENITE_HAS_TILE_FLAGS)
if(NOT ARENITE_HAS_TILE_FLAGS)
    set(arenite_tile_flags)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ARENITE_SANITIZE)
    # for the files whose arrays of vectors must become registers; the others stay at -O2
    set(arenite_unrolled $<$<NOT:$<BOOL:$<TARGET_PROPERTY:EMULATED>>>:-O3>)
endif()
add_library(arenite_kernel_flags INTERFACE) # for each load of a vector clang tests the pointer in four more ways than its address
if(ARENITE_SANITIZE MATCHES "undefined" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_compile_options(arenite_kernel_flags INTERFACE -fno-sanitize=alignment,null,object-size,pointer-overflow)
endif()

function(arenite_kernels target)
    # kernels/*.c holds what is instantiated per set; kernels/portable/*.c holds the definitions, compiled once
    file(GLOB definitions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/portable/*.c)
    target_sources(${target} PRIVATE ${definitions})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/*.c)
    set(objects)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/quant_gemm.c
        PROPERTIES COMPILE_OPTIONS "${arenite_unrolled};${arenite_tile_flags}")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/attention.c
        ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/quant_gemv.c PROPERTIES COMPILE_OPTIONS "${arenite_unrolled}")
    foreach(row ${arenite_isas})
        separate_arguments(row UNIX_COMMAND "${row}")
        list(POP_FRONT row isa header)
        string(REPLACE ".h" "_int.h" header_int ${header})
        add_library(ggml_${isa} OBJECT ${sources})
        target_compile_options(ggml_${isa} PRIVATE ${row})
        target_compile_definitions(ggml_${isa} PRIVATE ISA=${isa} SIMD="${header}" SIMD_INT="${header_int}")
        target_link_libraries(ggml_${isa} PRIVATE ggml_private arenite_kernel_flags)
        target_compile_definitions(${target} PRIVATE HAVE_ISA_${isa})
        list(APPEND objects $<TARGET_OBJECTS:ggml_${isa}>)
    endforeach()
    set(kernel_objects ${objects} PARENT_SCOPE)
endfunction()
