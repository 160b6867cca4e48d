# muster_add_suites(PROGRAM PROPERTY VALUE…): every suite of the GoogleTest program is a ctest test that runs in one
# process: with a process per case, a sanitizer build would spend most of its time starting processes. ctest includes
# this file when it starts, so the build runs no test program. The list of suites is kept beside the program until that
# changes.
#
# A suite with cases that were skipped has passed; scripts/skipped finds them in its output. (To ctest a test with
# skipped cases would be skipped, even with failures.)

function(muster_add_suites program)
  get_filename_component(name ${program} NAME)
  if(NOT EXISTS ${program})
    add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
    set_tests_properties(${name}_NOT_BUILT PROPERTIES ${ARGN})
    return()
  endif()
  set(list ${program}.suites)
  if(NOT EXISTS ${list} OR ${program} IS_NEWER_THAN ${list})
    execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE output RESULT_VARIABLE result TIMEOUT 300)
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "${program} --gtest_list_tests: ${result}\n${output}")
    endif()
    file(WRITE ${list} "${output}")
  endif()
  # "Suite.", "Kind/Suite." or "Suite/0.  # TypeParam = …"; cases are indented.
  file(STRINGS ${list} lines REGEX "^[^ ]+\\.( |$)")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "\\.( .*)?$" "" suite "${line}")
    add_test(${name}.${suite} ${program} --gtest_filter=${suite}.*)
    set_tests_properties(${name}.${suite} PROPERTIES ${ARGN})
  endforeach()
endfunction()
