#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lists of pids and fields of /proc/PID/stat are split into words on purpose; counters of loops go unused:
# shellcheck disable=SC2086,SC2046,SC2013,SC2034
# slurm_down.sh [DIR [--purge]]: ends what slurm_up.sh started in DIR, by recorded pid and start time, and nothing else.
set -u
DIR=${1:-/tmp/acc-slurm.$UID}; [ -d "$DIR/pid" ] || exit 0
export SLURM_CONF=$DIR/slurm.conf
starttime() { local s; s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; set -- ${s##*) }; echo "${20}"; }
ours() { local pid st; read -r pid st <"$1" 2>/dev/null && [ "$(starttime "$pid" 2>/dev/null || true)" = "$st" ] && echo "$pid"; }
NS=$(cat "$DIR/netns" 2>/dev/null); on() { if [ -n "$NS" ]; then bash "$(dirname "$0")/netns_node.sh" "$NS" run 0 "$@"; else "$@"; fi; }
if ours "$DIR/pid/slurmctld" >/dev/null; then on timeout 3 scancel -u "$(id -un)" 2>/dev/null; for i in $(seq 100); do [ -z "$(on timeout 2 squeue -h 2>/dev/null)" ] && break; sleep 0.05; done; fi
# step daemons outlive their slurmd: ours are those whose environment names this DIR's slurm.conf or spool
stepds=; for p in /proc/[0-9]*; do case "$( { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null)" in slurmstepd*) if tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "SLURM_CONF=$DIR/slurm.conf" || readlink "$p"/fd/* 2>/dev/null | grep -qF "$DIR/log/"; then stepds="$stepds ${p#/proc/}"; fi;; esac; done
kids() { local c; for c in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$c"; kids "$c"; done; }
pids=; for f in "$DIR"/pid/*; do p=$(ours "$f") && pids="$pids $p $(kids "$p")"; done
[ -n "$pids$stepds" ] && kill -TERM $pids $stepds 2>/dev/null
for i in $(seq 100); do left=; for p in $pids $stepds; do kill -0 "$p" 2>/dev/null && left="$left $p"; done; [ -z "$left" ] && break; sleep 0.05; done
[ -n "${left:-}" ] && kill -KILL $left 2>/dev/null
rm -rf "$DIR/pid" "$DIR/up"; [ "${2:-}" = --purge ] && rm -rf "$DIR"
exit 0
