#!/usr/bin/env bash
# All-reduce over real TCP between two hosts of this machine: two network
# namespaces joined by a pair of virtual interfaces, a process in each, first
# over the pair as it is and then through a link of known bandwidth.
#
#   bazel build //bench:network_all_reduce_benchmark
#   bench/network_namespace_benchmark.sh [--binary=FILE] [--rate_megabits=1000]
#       [--sizes=BYTES,...] [--lanes=tcp|grpc] [--congestion=NAME] [--realtime]
#
# Needs root, and ip and tc of iproute2. Removes what it has made however it
# ends. --realtime runs the ranks before everything else on a machine that has
# other work.
#
# "sent/bus" is what the interface has counted by the payload: well above 1, and
# something went twice. Virtual interfaces pass on segments uncut, so that this
# lacks the headers of most frames. The limit counts them, as a wire would:
# "payload" is bus bandwidth by the link's, at most 0.956, and "on wire" is the
# frames that it takes. The bucket holds 128 KiB that go out at once, so that
# only sizes far beyond it show the rate.
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
    *) echo "unknown: $argument" >&2; exit 2 ;;
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
  # With a namespace goes its end of the pair, and so does the other.
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
  # Of the namespace alone.
  ip netns exec "${namespaces[i]}" \
    sysctl -q "net.ipv4.tcp_congestion_control=$congestion"
  ip -n "${namespaces[i]}" link set veth up
done

# Both ranks with these flags; fails when one of them does.
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
