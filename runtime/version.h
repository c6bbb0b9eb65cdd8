/* version.h - which version these headers are of; CMakeLists.txt reads it from here. tilec_version() and tilert_version() say which
 * the library is of. Before 1.0 a new minor version may change structures and calls, and the names of the libraries change with it
 * (libtilec.so.0.1); a new patch version may only add calls. packaging/abi.txt is what that covers. */
#ifndef TILEC_VERSION_H
#define TILEC_VERSION_H

#define TILEC_VERSION_MAJOR 0
#define TILEC_VERSION_MINOR 1
#define TILEC_VERSION_PATCH 0

#define TILEC_VERSION_WORDS(major, minor, patch) #major "." #minor "." #patch
#define TILEC_VERSION_TEXT(major, minor, patch) TILEC_VERSION_WORDS(major, minor, patch)
/* "0.1.0" */
#define TILEC_VERSION TILEC_VERSION_TEXT(TILEC_VERSION_MAJOR, TILEC_VERSION_MINOR, TILEC_VERSION_PATCH)
/* For comparisons: 0.1.0 is 100, 1.2.3 is 10203. */
#define TILEC_VERSION_NUMBER (TILEC_VERSION_MAJOR * 10000 + TILEC_VERSION_MINOR * 100 + TILEC_VERSION_PATCH)

#endif
