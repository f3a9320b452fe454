#!/bin/sh
# A build installed elsewhere serves a program outside the source tree, found by find_package and by pkg-config, and the
# installed tool starts.
#
# usage: installed.sh CMAKE BUILD CC [--static]
set -eu
cmake=$1 build=$2 cc=$3 static=${4-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/program.c" "$here/CMakeLists.txt" "$work"
cd "$work"

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv first moved                                          # nothing in it knows where it was put
prefix=$work/moved

echo "find_package"
"$cmake" -S . -B by-cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >/dev/null
"$cmake" --build by-cmake >/dev/null
by-cmake/program

echo "pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name llama.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror program.c -o by-pkg-config $(pkg-config --cflags --libs ${static} llama)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir llama) ./by-pkg-config

if [ -x "$prefix/bin/arenite" ]; then
    echo "the tool"
    "$prefix/bin/arenite" --version
fi
