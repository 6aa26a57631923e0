# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the shell scripts: -h or --help prints the comment on top of the script, and what it does not take is refused.

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -nE '3,${/^#/!q; /^# shellcheck/!s/^# ?//p}' "$0"
  exit
fi

refuse_argument() {  # ARGUMENT
  fail "unknown argument '$1'; $0 --help says what there is"
}

take_option() {  # KNOWN ARGUMENT...: sets option to the argument, where there is one and it is of KNOWN (--a|--b)
  option=${2:-}
  if (($# > 2)) || [[ -n $option && "|$1|" != *"|$option|"* ]]; then refuse_argument "${!#}"; fi
}
