# The Debian package (`./dev package`): CPack's DEB generator. Which libraries the binary needs is found by dpkg-shlibdeps.
set(RECIBO_PACKAGER "Recibo <recibo@localhost>" CACHE STRING "who makes the Debian package and answers for it: Name <address>")
set(debian ${CMAKE_SOURCE_DIR}/config/debian)
set(made ${CMAKE_BINARY_DIR}/debian)
set(component COMPONENT recibo)
# CPack builds nothing by itself: not the tests either.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# Debian wants these compressed, without the time in them.
function(recibo_gzip from to)
  add_custom_command(OUTPUT ${made}/${to} DEPENDS ${from}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${made}
                     COMMAND gzip -9n < ${from} > ${made}/${to} VERBATIM)
  set(gzipped ${gzipped} ${made}/${to} PARENT_SCOPE)
endfunction()
recibo_gzip(${debian}/recibo.1 recibo.1.gz)
configure_file(${debian}/changelog ${made}/changelog @ONLY)
recibo_gzip(${made}/changelog changelog.Debian.gz)
recibo_gzip(${CMAKE_SOURCE_DIR}/docs/changelog.md changelog.gz)
add_custom_target(debian_files DEPENDS ${gzipped})

install(FILES config/systemd/recibo.service config/systemd/recibo-migrate.service DESTINATION lib/systemd/system ${component})
install(FILES config/recibo.yaml DESTINATION /etc/recibo ${component})
install(FILES ${debian}/environment PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ DESTINATION /etc/recibo ${component})
install(FILES ${debian}/owner PERMISSIONS OWNER_READ OWNER_WRITE DESTINATION /etc/recibo ${component})
install(FILES ${debian}/lintian-overrides DESTINATION share/lintian/overrides RENAME recibo ${component})
install(FILES config/recibo.schema.json DESTINATION share/recibo ${component})
install(FILES docker/haproxy.cfg docker/nginx.conf DESTINATION share/doc/recibo/examples ${component})
install(FILES README.md docs/operations.md docs/states.md docs/signature-schemes.md ${debian}/copyright DESTINATION share/doc/recibo ${component})
install(FILES ${made}/changelog.gz ${made}/changelog.Debian.gz DESTINATION share/doc/recibo ${component} OPTIONAL)
install(FILES ${made}/recibo.1.gz DESTINATION share/man/man1 ${component} OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME recibo)
set(CPACK_PACKAGE_CONTACT "${RECIBO_PACKAGER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "receive asynchronous provider callbacks, each recorded once")
set(CPACK_PACKAGE_DESCRIPTION
"Services register each operation before they call a provider (payments,
identity checks, banks, document signing), and the provider's callbacks
come here. A callback that was answered 2xx is recorded once, is never
lost, and never applies its effect twice. Needs a PostgreSQL server, here
or elsewhere.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR OFF)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL recibo)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME recibo)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "postgresql, haproxy | nginx")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_SOURCE_DIR}/.dev/package)
include(CPack)
