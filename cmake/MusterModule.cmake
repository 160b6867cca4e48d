# muster_module(NAME name LAYER n SRCS … [DEPS …] [LIBS …] [TESTS …] [TEST_LIBS …] [PCH name] [NO_UNITY])
#
# Declares the library muster_<name> in src/<name>/; in the names of targets a "/" of <name> is a "_". DEPS are other
# modules and must be in a lower layer; LIBS are external targets. TESTS are the *_test.cc files, linked into one
# <name>_test program. PCH is the set of precompiled headers of both (default: muster_pch, and muster_test_pch for the
# tests). scripts/check_layers reads the graph that muster_write_module_graph() leaves in the build folder and checks
# the #includes against it.

set_property(GLOBAL PROPERTY MUSTER_MODULE_GRAPH "")

function(muster_module)
  cmake_parse_arguments(ARG "NO_UNITY" "NAME;LAYER;PCH" "SRCS;DEPS;LIBS;TESTS;TEST_LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "muster_module(${ARG_NAME}): unexpected ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  string(REPLACE "/" "_" target muster_${ARG_NAME})

  add_library(${target} STATIC ${ARG_SRCS})
  if(ARG_PCH)
    set(test_pch PCH ${ARG_PCH})
  else()
    set(ARG_PCH muster_pch)
    set(test_pch "")
  endif()
  muster_use_pch(${target} ${ARG_PCH})
  if(NOT ARG_NO_UNITY)
    muster_use_unity(${target})
  endif()
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
  # Users of an installed archive do not need header-only libraries.
  list(TRANSFORM ARG_LIBS REPLACE "^(nlohmann_json|CLI11)::.*$" "$<BUILD_INTERFACE:\\0>")
  target_link_libraries(${target} PUBLIC ${ARG_LIBS})

  list(JOIN ARG_DEPS "," deps)
  set_property(GLOBAL APPEND PROPERTY MUSTER_MODULE_GRAPH "${ARG_NAME} ${ARG_LAYER} ${deps}")

  if(ARG_TESTS)
    string(REPLACE "/" "_" test ${ARG_NAME}_test)
    muster_test(NAME ${test} SRCS ${ARG_TESTS} LIBS ${target} ${ARG_TEST_LIBS} ${test_pch})
  endif()
endfunction()

# muster_test(NAME name SRCS … LIBS … [PCH name]): a program of unit tests. MusterSuites.cmake defines which ctest tests
# it becomes.
function(muster_test)
  cmake_parse_arguments(ARG "" "NAME;PCH" "SRCS;LIBS" ${ARGN})
  if(NOT BUILD_TESTING OR NOT MUSTER_UNIT_TESTS)
    return()
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_PCH)
    set(ARG_PCH muster_test_pch)
  endif()
  muster_use_pch(${ARG_NAME} ${ARG_PCH})
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_suites.cmake)
  file(GENERATE OUTPUT ${suites} CONTENT "include(${PROJECT_SOURCE_DIR}/cmake/MusterSuites.cmake)
muster_add_suites($<TARGET_FILE:${ARG_NAME}> TIMEOUT 400 LABELS unit)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
endfunction()

function(muster_write_module_graph)
  get_property(graph GLOBAL PROPERTY MUSTER_MODULE_GRAPH)
  list(JOIN graph "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/modules.txt "${text}\n")
endfunction()
