#!/bin/sh
# A transcript is a list of commands, each with what it prints and its exit code:
#   $ command        run by sh in a fresh directory that holds the files of models.c
#   | text           a line of its stdout
#   ! text           a line of its stderr
#   = code           its exit code, when that is not 0
# Lines that begin with # and empty ones are comment. This plays every command and compares; --update rewrites the transcript.
#
# usage: transcript.sh TOOL MODELS TRANSCRIPT [--update]
set -eu
tool=$1 models=$2 transcript=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/files"
ln -s "$tool" "$work/bin/arenite"
PATH=$work/bin:$PATH LC_ALL=C ASAN_OPTIONS=allocator_may_return_null=1       # what cannot be had is NULL, as without it
export PATH LC_ALL ASAN_OPTIONS
cd "$work/files"
"$models"

play() {
    code=0
    timeout 60 sh -c "$1" </dev/null >"$work/out" 2>"$work/err" || code=$?
    printf '$ %s\n' "$1"
    awk '!/WARNING: AddressSanitizer failed to allocate/ { print "| " $0 }' "$work/out"
    awk '!/WARNING: AddressSanitizer failed to allocate/ { print "! " $0 }' "$work/err"
    [ $code -eq 0 ] || printf '= %d\n' $code
}

while IFS= read -r line; do
    case $line in
        '$ '*)   play "${line#??}" ;;
        '#'*|'') printf '%s\n' "$line" ;;
    esac
done <"$transcript" >"$work/played"

if [ "${4-}" = --update ]; then
    cp "$work/played" "$transcript"
else
    diff -u "$transcript" "$work/played" && echo "$(grep -c '^\$ ' "$transcript") commands, 0 failed"
fi
