# `bench-micro`: single kernels and ops timed on this machine (bench/README.md). Built and run only when asked for, one after the other.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/micro_*.c)
set(programs)
foreach(source ${bench_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    if(name STREQUAL "micro_ops")           # sees the interface alone, and runs on any library that serves it
        target_link_libraries(${name} PRIVATE ggml)
    else()
        target_link_libraries(${name} PRIVATE ggml_inside)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    list(APPEND programs COMMAND ${name})
endforeach()
add_custom_target(bench-micro ${programs} USES_TERMINAL)    # figures are shown as they come
