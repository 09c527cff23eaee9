#!/usr/bin/env bash
# All-reduce over TCP between two network namespaces of this machine that are
# connected by a pair of virtual interfaces, with one process in each. Measures
# the pair without a limit, and then a link of known bandwidth.
#
#   bazel build //bench:network_all_reduce_benchmark
#   bench/network_namespace_benchmark.sh [--binary=FILE] [--rate_megabits=1000]
#       [--sizes=BYTES,...] [--lanes=tcp|grpc] [--congestion=NAME] [--realtime]
#
# Requires root, and ip and tc of iproute2. Cleans up on every exit. --realtime
# gives the ranks priority over all other processes.
#
# "sent/bus" is the ratio of the bytes counted by the interface to the payload;
# a value well above 1 indicates retransmission. Virtual interfaces transfer
# unsegmented packets, so the count lacks the headers of most frames. The limit
# counts them, like a real link: "payload" is the bus bandwidth relative to the
# link, at most 0.956, and "on wire" includes the headers. The token bucket
# holds 128 KiB, which are sent in a burst, so only much larger sizes show the
# rate.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
binary=$root/bazel-bin/bench/network_all_reduce_benchmark
rate_megabits=1000
sizes=1024,65536,1048576,16777216,67108864
lanes=tcp
congestion=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
before_others=()
for argument in "$@"; do
  case $argument in
    --binary=*) binary=${argument#*=} ;;
    --rate_megabits=*) rate_megabits=${argument#*=} ;;
    --sizes=*) sizes=${argument#*=} ;;
    --lanes=*) lanes=${argument#*=} ;;
    --congestion=*) congestion=${argument#*=} ;;
    --realtime) before_others=(chrt -f 20) ;;
    *) echo "unknown argument: $argument" >&2; exit 2 ;;
  esac
done
[[ -x $binary ]] || { echo "no binary at $binary" >&2; exit 2; }

folder=$(mktemp -d)
namespaces=("muster-link-$$-0" "muster-link-$$-1")
addresses=(10.214.0.1 10.214.0.2)
made=()
ranks=()

clean_up() {
  for pid in ${ranks[@]+"${ranks[@]}"}; do kill "$pid" 2>/dev/null || true; done
  wait
  # Deleting a namespace deletes its interface and the other end of the pair.
  for name in ${made[@]+"${made[@]}"}; do ip netns delete "$name"; done
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for name in "${namespaces[@]}"; do
  ip netns add "$name"
  made+=("$name")
done
ip link add veth netns "${namespaces[0]}" type veth \
  peer name veth netns "${namespaces[1]}"
for i in 0 1; do
  ip -n "${namespaces[i]}" addr add "${addresses[i]}/24" dev veth
  ip -n "${namespaces[i]}" link set lo up
  # Applies only to the namespace.
  ip netns exec "${namespaces[i]}" \
    sysctl -q "net.ipv4.tcp_congestion_control=$congestion"
  ip -n "${namespaces[i]}" link set veth up
done

# Runs both ranks with these flags; fails if one of them fails.
run_ranks() {
  local meeting=$folder/$1
  shift
  mkdir "$meeting"
  ranks=()
  for i in 0 1; do
    ip netns exec "${namespaces[i]}" ${before_others[@]+"${before_others[@]}"} \
      "$binary" --folder="$meeting" --rank=$i --size=2 \
      --host="${addresses[i]}" --interface=veth --lanes="$lanes" \
      --sizes="$sizes" "$@" &
    ranks+=($!)
  done
  local pid
  for pid in "${ranks[@]}"; do wait "$pid"; done
  ranks=()
}

echo "kernel $(uname -r), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg)," \
  "$congestion, ${before_others[*]:-not realtime}"
echo "$lanes, no limit"
run_ranks unlimited
for name in "${namespaces[@]}"; do
  tc -n "$name" qdisc add dev veth root tbf rate "${rate_megabits}mbit" \
    burst 128k latency 50ms
done
echo "$lanes, $rate_megabits Mbit/s each way"
run_ranks limited --link_megabits="$rate_megabits"
