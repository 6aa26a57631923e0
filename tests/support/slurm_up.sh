#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lists of pids and fields of /proc/PID/stat are split into words on purpose; counters of loops go unused:
# shellcheck disable=SC2086,SC2046,SC2013,SC2034
# slurm_up.sh [DIR [NODES [CPUS [GPUS]]]]   a real Slurm on this one machine, loopback only, no systemd.
# Idempotent: a second call with a healthy cluster in DIR does nothing and prints the same env file.
# Needs Debian's slurm-wlm (and munge unless SLURM_UP_AUTH=none).  Prints DIR/env.sh: source it, then srun/sbatch work.
# Knobs (environment): SLURM_UP_AUTH=munge|none  SLURM_UP_KILLWAIT=3  SLURM_UP_PORT=17001  SLURM_UP_SLURMD_TIMEOUT=10
#   SLURM_UP_NETNS=TAG: the nodes are the hosts node0.. of netns_up.sh NODES TAG (own addresses, names that resolve); the
#   controller runs on node0, and the commands (srun, sbatch, sinfo) work there:  netns_node.sh TAG run 0 srun ...
set -eu
DIR=${1:-/tmp/acc-slurm.$UID}; NODES=${2:-3}; CPUS=${3:-4}; GPUS=${4:-2}
AUTH=${SLURM_UP_AUTH:-munge}; PORT=${SLURM_UP_PORT:-17001}; KILLWAIT=${SLURM_UP_KILLWAIT:-3}
HERE=$(cd "$(dirname "$0")" && pwd)
for p in slurmctld slurmd sinfo scontrol; do command -v $p >/dev/null || PATH=$PATH:/usr/sbin; command -v $p >/dev/null || { echo "slurm_up: $p not found (apt-get install slurm-wlm munge)" >&2; exit 77; }; done
[ "$AUTH" = none ] || command -v munged >/dev/null || { echo "slurm_up: munged not found (apt-get install munge)" >&2; exit 77; }
starttime() { local s; s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; set -- ${s##*) }; echo "${20}"; }
alive() { # pidfile holds "pid starttime"
  local pid st; read -r pid st <"$1" 2>/dev/null && [ "$(starttime "$pid" 2>/dev/null || true)" = "$st" ]; }
NS=${SLURM_UP_NETNS:-}; on() { local i=$1; shift; if [ -n "$NS" ]; then bash "$HERE/netns_node.sh" "$NS" run "$i" "$@"; else "$@"; fi; }
idle_nodes() { export SLURM_CONF=$DIR/slurm.conf; on 0 timeout 3 sinfo -h -N -o '%T' 2>/dev/null | grep -c -E '^(idle|mixed|allocated)$' || true; }
if [ -e "$DIR/up" ]; then
  ok=1; for f in "$DIR"/pid/*; do alive "$f" || ok=0; done
  if [ $ok = 1 ] && [ "$(idle_nodes)" = "$(cat "$DIR/up")" ]; then echo "$DIR/env.sh"; exit 0; fi
  bash "$HERE/slurm_down.sh" "$DIR"
elif [ -e "$DIR/pid" ]; then bash "$HERE/slurm_down.sh" "$DIR"; fi
rm -rf "$DIR"; mkdir -p "$DIR"/{pid,log,state,munge,dev}; echo "$NS" >"$DIR/netns"; chmod 755 "$DIR"; chmod 700 "$DIR/munge"
spawn() { # spawn NAME cmd...: own session, stdin closed, pid and start time recorded
  local name=$1; shift
  setsid "$@" </dev/null >>"$DIR/log/$name.out" 2>&1 &
  local pid=$!; echo "$pid $(starttime $pid || echo 0)" >"$DIR/pid/$name"; }
if [ "$AUTH" = munge ]; then
  dd if=/dev/urandom of="$DIR/munge/key" bs=128 count=1 status=none; chmod 600 "$DIR/munge/key"
  mkdir "$DIR/munge/run"; chmod 755 "$DIR/munge/run"; chmod 711 "$DIR/munge"
  spawn munged munged --foreground --force --num-threads=2 --socket="$DIR/munge/run/s" --key-file="$DIR/munge/key" \
     --pid-file="$DIR/munge/run/pid" --seed-file="$DIR/munge/seed" --log-file="$DIR/log/munged.log" --benchmark
  AUTHCONF="AuthType=auth/munge
AuthInfo=socket=$DIR/munge/run/s
CredType=cred/munge"
else AUTHCONF="AuthType=auth/none
CredType=cred/none"; fi
F=1 L=$NODES; [ -n "$NS" ] && F=0 L=$((NODES-1))
NL=node$F; [ "$NODES" -gt 1 ] && NL="node[$F-$L]"; PL=$((PORT+1)); [ "$NODES" -gt 1 ] && PL="[$((PORT+1))-$((PORT+NODES))]"
CTLD="localhost(127.0.0.1)" ADDR="NodeHostname=localhost NodeAddr=127.0.0.1 Port=$PL"
[ -n "$NS" ] && CTLD="node0(10.77.0.10)" ADDR="NodeAddr=$NL Port=$((PORT+1))"
GRES=; GRESTYPES=
if [ "$GPUS" -gt 0 ]; then
  GRES="Gres=gpu:$GPUS"; GRESTYPES="GresTypes=gpu"
  for i in $(seq 0 $((GPUS-1))); do mknod -m 666 "$DIR/dev/gpu$i" c 1 3; done   # a character device is demanded; these are /dev/null by another name
  { echo "AutoDetect=off"; if [ "$GPUS" -gt 1 ]; then echo "NodeName=$NL Name=gpu File=$DIR/dev/gpu[0-$((GPUS-1))]"; else echo "NodeName=$NL Name=gpu File=$DIR/dev/gpu0"; fi; } >"$DIR/gres.conf"
fi
cat >"$DIR/slurm.conf" <<C
ClusterName=acctest
SlurmctldHost=$CTLD
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
$AUTHCONF
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool.%n
SlurmctldPidFile=$DIR/state/ctld.pid
SlurmdPidFile=$DIR/state/%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=$KILLWAIT
MinJobAge=60
SlurmctldTimeout=10
SlurmdTimeout=${SLURM_UP_SLURMD_TIMEOUT:-10}
InactiveLimit=0
JobRequeue=1
RequeueExit=75
PropagateResourceLimits=NONE
$GRESTYPES
NodeName=$NL $ADDR CPUs=$CPUS RealMemory=4000 $GRES
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:4
C
cat >"$DIR/env.sh" <<C
export SLURM_CONF=$DIR/slurm.conf
C
export SLURM_CONF=$DIR/slurm.conf
unset $(compgen -e | grep -E '^(SLURM|SBATCH|SRUN)_' | grep -v -E '^SLURM_CONF$|^SLURM_UP_') 2>/dev/null || true
if [ "$AUTH" = munge ]; then for i in $(seq 100); do [ -S "$DIR/munge/run/s" ] && break; sleep 0.05; done; fi
if [ -n "$NS" ]; then
  spawn slurmctld bash "$HERE/netns_node.sh" "$NS" run 0 slurmctld -D -c -f "$DIR/slurm.conf"
  for i in $(seq "$F" "$L"); do mkdir -p "$DIR/spool.node$i"; spawn "slurmd.node$i" bash "$HERE/netns_node.sh" "$NS" run "$i" slurmd -D -N "node$i" -f "$DIR/slurm.conf"; done
else
  spawn slurmctld slurmctld -D -c -f "$DIR/slurm.conf"
  for i in $(seq "$F" "$L"); do mkdir -p "$DIR/spool.node$i"; spawn "slurmd.node$i" slurmd -D -N "node$i" -f "$DIR/slurm.conf"; done
fi
for i in $(seq 200); do
  if [ "$(idle_nodes)" = "$NODES" ]; then echo "$NODES" >"$DIR/up"; echo "$DIR/env.sh"; exit 0; fi
  for f in "$DIR"/pid/*; do alive "$f" || { echo "slurm_up: ${f##*/} died:" >&2; for g in "$DIR/log/${f##*/}".*; do tail -n 5 "$g" >&2; done; bash "$HERE/slurm_down.sh" "$DIR"; exit 1; }; done
  sleep 0.05
done
echo "slurm_up: nodes not idle in time; logs in $DIR/log" >&2; exit 1
