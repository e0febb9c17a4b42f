#!/bin/bash
# Brings up a SLURM cluster of three nodes on this machine: cpu (no GPU), and one node for each of two GPU models.
# A job of the partition urgent takes the place of one of the partition gpu, which is cancelled.
#
#   tests/cluster/up.sh install    installs Debian's packages (root)
#   tests/cluster/up.sh up         starts the daemons (root) and prints the nodes
#   tests/cluster/up.sh down       stops them
#
# The GPUs are gres bound to devices that every machine has. SLURM_ROOT is the folder of the daemons' state (default: /tmp/warplog-slurm).
# The configuration is /etc/slurm/slurm.conf, since the executor plugin removes SLURM_CONF from the environment of jobs;
# one that this script did not write is left alone.
set -euo pipefail
root=${SLURM_ROOT:-/tmp/warplog-slurm}
etc=/etc/slurm
mark="# written by warplog's tests/cluster/up.sh"

install_packages() {
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # RUNLEVEL: do not start the services
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge
}

write_configuration() {
  local host cores memory
  host=$(hostname -s)
  cores=$(nproc)
  memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
  if [ -s $etc/slurm.conf ] && ! grep -qF "$mark" $etc/slurm.conf; then
    echo "$etc/slurm.conf exists and is not this script's; remove it first" >&2
    exit 1
  fi
  mkdir -p $etc "$root"/{ctld,log,cpu,a,b}
  cat >$etc/slurm.conf <<END
$mark
ClusterName=warplog
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
AuthType=auth/munge
StateSaveLocation=$root/ctld
SlurmdSpoolDir=$root/%n
SlurmctldPidFile=$root/ctld.pid
SlurmdPidFile=$root/%n.pid
SlurmctldLogFile=$root/log/ctld.log
SlurmdLogFile=$root/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MinJobAge=300
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=2
GresTypes=gpu
DefMemPerCPU=512
NodeName=cpu NodeHostname=$host NodeAddr=127.0.0.1 Port=16820 CPUs=$cores RealMemory=$memory State=UNKNOWN
NodeName=a NodeHostname=$host NodeAddr=127.0.0.1 Port=16821 CPUs=$cores RealMemory=$memory Gres=gpu:h200:2 State=UNKNOWN
NodeName=b NodeHostname=$host NodeAddr=127.0.0.1 Port=16822 CPUs=$cores RealMemory=$memory Gres=gpu:h100:1 State=UNKNOWN
PartitionName=cpu Nodes=cpu Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes=a,b MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=a,b PriorityTier=10 MaxTime=INFINITE State=UP
END
  cat >$etc/gres.conf <<END
NodeName=a Name=gpu Type=h200 File=/dev/null
NodeName=a Name=gpu Type=h200 File=/dev/zero
NodeName=b Name=gpu Type=h100 File=/dev/full
END
}

start() {
  write_configuration
  [ -s /etc/munge/munge.key ] || { (umask 077 && head -c 1024 /dev/urandom >/etc/munge/munge.key) && chown munge: /etc/munge/munge.key; }
  install -d -o munge -g munge -m 755 /run/munge
  munge -n >/dev/null 2>&1 || runuser -u munge -- /usr/sbin/munged
  slurmctld -c
  for node in cpu a b; do slurmd -c -N $node; done
  for _ in $(seq 60); do
    [ "$(sinfo -h -N -o '%N %T' | sort -u | grep -c -E ' (idle|mixed|allocated)$')" = 3 ] && break
    sleep 0.5
  done
  sinfo -N -o '%N %T %c %m %G' | sort -u
}

stop() {
  for name in cpu a b ctld; do
    [ -s "$root/$name.pid" ] && kill "$(cat "$root/$name.pid")" || true
  done
}

case ${1:-} in
install) install_packages ;;
up) start ;;
down) stop ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
