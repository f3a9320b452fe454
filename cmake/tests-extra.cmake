# What single tests need beyond tests.cmake.

# allocations counted, and made to fail, by the test itself
if(TARGET test_core_gallocr)
    target_link_options(test_core_gallocr PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
endif()
