# muster_package()
#
# Installs the library muster::train: its one header, the archives it is made of, and the files that
# find_package(muster) reads. The archives expose no headers of their own, so they may change between versions.

include(CMakePackageConfigHelpers)

# Every target of ours that `target` links, itself included.
function(muster_closure target out)
  set(found "")
  set(queue ${target})
  while(queue)
    list(POP_FRONT queue next)
    if(next IN_LIST found OR NOT next MATCHES "^muster_")
      continue()
    endif()
    list(APPEND found ${next})
    get_target_property(links ${next} LINK_LIBRARIES)
    list(APPEND queue ${links})
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(muster_package)
  muster_closure(muster_train targets)
  foreach(target IN LISTS targets)
    string(REGEX REPLACE "^muster_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
  install(TARGETS ${targets} EXPORT muster_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster)
  install(EXPORT muster_targets NAMESPACE muster:: FILE muster-targets.cmake DESTINATION ${package})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/train/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/muster-config.cmake.in
    ${PROJECT_BINARY_DIR}/muster-config.cmake INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/muster-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/muster-config.cmake ${PROJECT_BINARY_DIR}/muster-config-version.cmake
          DESTINATION ${package})
endfunction()
