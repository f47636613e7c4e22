#!/usr/bin/env bash
# A Slurm of one node on this machine, and a command in it: slurm_here.sh DIR COMMAND…
# Needs root and Debian's slurmctld, slurmd and munge. DIR holds its configuration and logs; all ends with the command.
set -eu
dir=$1
shift
mkdir -p "$dir/spool" "$dir/state" /run/munge
host=$(hostname -s)
cores=$(nproc)
megabytes=$(awk "/MemTotal/ {print int(\$2 / 1100)}" /proc/meminfo)
cat >"$dir/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores RealMemory=$megabytes State=UNKNOWN
PartitionName=long Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$dir/slurm.conf
[ -f /etc/munge/munge.key ] || (umask 077 && head -c 1024 /dev/urandom >/etc/munge/munge.key)
chown munge:munge /etc/munge/munge.key /run/munge
pgrep -x munged >/dev/null || runuser -u munge -- munged
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF" -N "$host"
trap 'kill $(cat "$dir/slurmd.pid" "$dir/slurmctld.pid") 2>/dev/null || true' EXIT
for _ in $(seq 60); do
    sinfo -h -o %T 2>/dev/null | grep -qx 'idle\|mixed' && break
    sleep 0.5
done
sinfo >&2
"$@"
