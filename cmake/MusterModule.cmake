# muster_module(NAME name LAYER n SRCS … [DEPS …] [LIBS …] [TESTS …])
#
# Declares the library muster_<name> in src/<name>/; in the names of targets a "/" of <name> is a "_". DEPS are other
# modules and must stand on a lower layer; LIBS are external targets. TESTS are the *_test.cc files, linked into one
# <name>_test program.
# scripts/check_layers reads the graph that muster_write_module_graph() leaves in the build folder and
# holds the #includes to it.

set_property(GLOBAL PROPERTY MUSTER_MODULE_GRAPH "")

function(muster_module)
  cmake_parse_arguments(ARG "" "NAME;LAYER" "SRCS;DEPS;LIBS;TESTS;TEST_LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "muster_module(${ARG_NAME}): unexpected ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  string(REPLACE "/" "_" target muster_${ARG_NAME})

  add_library(${target} STATIC ${ARG_SRCS})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  set_target_properties(${target} PROPERTIES MUSTER_LAYER ${ARG_LAYER})

  foreach(dep IN LISTS ARG_DEPS)
    string(REPLACE "/" "_" dep_target muster_${dep})
    if(NOT TARGET ${dep_target})
      message(FATAL_ERROR "module ${ARG_NAME} depends on ${dep}, which is not declared before it")
    endif()
    get_target_property(dep_layer ${dep_target} MUSTER_LAYER)
    if(NOT dep_layer LESS ARG_LAYER)
      message(FATAL_ERROR "module ${ARG_NAME} (layer ${ARG_LAYER}) must not depend on ${dep} "
                          "(layer ${dep_layer}): dependencies point to lower layers only")
    endif()
    target_link_libraries(${target} PUBLIC ${dep_target})
  endforeach()
  # Who links an installed archive has no use for libraries that are headers alone.
  list(TRANSFORM ARG_LIBS REPLACE "^(nlohmann_json|CLI11)::.*$" "$<BUILD_INTERFACE:\\0>")
  target_link_libraries(${target} PUBLIC ${ARG_LIBS})

  list(JOIN ARG_DEPS "," deps)
  set_property(GLOBAL APPEND PROPERTY MUSTER_MODULE_GRAPH "${ARG_NAME} ${ARG_LAYER} ${deps}")

  if(ARG_TESTS)
    string(REPLACE "/" "_" test ${ARG_NAME}_test)
    muster_test(NAME ${test} SRCS ${ARG_TESTS} LIBS ${target} ${ARG_TEST_LIBS})
  endif()
endfunction()

# muster_test(NAME name SRCS … LIBS …): a program of unit tests.
function(muster_test)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;LIBS" ${ARGN})
  if(NOT BUILD_TESTING OR NOT MUSTER_UNIT_TESTS)
    return()
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${ARG_NAME} DISCOVERY_TIMEOUT 300 PROPERTIES TIMEOUT 400 LABELS unit)
endfunction()

function(muster_write_module_graph)
  get_property(graph GLOBAL PROPERTY MUSTER_MODULE_GRAPH)
  list(JOIN graph "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/modules.txt "${text}\n")
endfunction()
