#!/usr/bin/env bash
# Builds the control plane that the real suites run on: etcd, kube-apiserver, kube-controller-manager and kwok; helm, which
# renders the chart; and Volcano's controller manager (with Volcano's chart), which Tephra's scheduler can work beside.
#
#   build.sh            builds what is missing; the last line of standard output is the folder with the programs
#   build.sh --where    prints that folder without building; exit 4 when it is not complete
#   build.sh promcheck  builds only what reads metrics as Prometheus does, and prints where it is (prometheus/main.go)
#
# The sources come through the Go module proxy at the versions of the go.mod files beside this script. The programs
# go to a cache folder outside the clone, keyed by those files and the Go version, so that a fresh clone finds them:
#   ${TEPHRA_CACHE:-$HOME/.cache/tephra}/rig/<key>/bin
# KUBEBUILDER_ASSETS, when set, is taken instead and nothing is built. Exit 3: neither that nor Go is there.
# Cold it costs about 16 minutes of CPU; with the Go build cache warm, seconds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kubernetes=v1.35.3

# Its own key: a change there must not cost a control plane.
promcheck() {
  local key folder
  key=$( (cd "$here/prometheus" && cat go.mod go.sum main.go; go env GOVERSION) | sha256sum | cut -c1-16)
  folder=${TEPHRA_CACHE:-$HOME/.cache/tephra}/promcheck/$key
  if [ ! -x "$folder/promcheck" ]; then
    mkdir -p "$folder"
    (
      flock 9
      unset GOFLAGS
      cd "$here/prometheus"
      echo "rig: building promcheck" >&2
      go build -buildvcs=false -p 2 -ldflags "-s -w" -o "$folder/.promcheck" .
      mv "$folder/.promcheck" "$folder/promcheck"
    ) 9>"$folder/lock"
  fi
  echo "$folder/promcheck"
}

if [ "${1:-}" = promcheck ]; then
  if ! command -v go >/dev/null; then
    echo "rig: no Go toolchain on PATH: promcheck cannot be built." >&2
    exit 3
  fi
  promcheck
  exit 0
fi

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for program in etcd kube-apiserver; do
    if [ ! -x "$KUBEBUILDER_ASSETS/$program" ]; then
      echo "rig: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no $program" >&2
      exit 3
    fi
  done
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi

if ! command -v go >/dev/null; then
  echo "rig: no Go toolchain on PATH and KUBEBUILDER_ASSETS is not set: etcd and kube-apiserver cannot be built." >&2
  echo "rig: install Go 1.26 or newer (https://go.dev/dl), or point KUBEBUILDER_ASSETS at a folder that has both." >&2
  exit 3
fi

key=$( (cd "$here" && cat {etcd,k8s,kwok,helm,volcano}/go.{mod,sum}; go env GOVERSION; echo "$kubernetes") | sha256sum | cut -c1-16)
root=${TEPHRA_CACHE:-$HOME/.cache/tephra}/rig/$key
bin=$root/bin
programs=(etcd kube-apiserver kube-controller-manager kwok helm vc-controller-manager volcano-chart)

complete() {
  local program
  for program in "${programs[@]}"; do [ -x "$bin/$program" ] || return 1; done
}

if [ "${1:-}" = --where ]; then
  echo "$bin"
  complete || exit 4
  exit 0
fi
if complete; then
  echo "$bin"
  exit 0
fi

mkdir -p "$bin"
# Two builds at once would only compile everything twice: the second one waits and finds the work done.
exec 9>"$root/lock"
flock 9
unset GOFLAGS # flags such as -trimpath make a second build cache of several gigabytes

build() { # module folder, package, program, further flags of go build
  local ldflags="-s -w"
  [ -x "$bin/$3" ] && return
  # Without these two the server calls itself v0.0.0-master, which breaks version checks and feature gates.
  [ "$1" = k8s ] && for package in k8s.io/component-base k8s.io/client-go/pkg; do
    ldflags+=" -X $package/version.gitVersion=$kubernetes"
  done
  # helm renders for the newest Kubernetes that it knows, by the same means.
  [ "$1" = helm ] && ldflags+=" -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=35"
  local start=$SECONDS
  echo "rig: building $3" >&2
  (cd "$here/$1" && go build -buildvcs=false -p 2 "${@:4}" -ldflags "$ldflags" -o "$bin/.$3" "$2")
  mv "$bin/.$3" "$bin/$3" # complete or absent, also when a build is ended half-way
  echo "rig: built $3 in $((SECONDS - start)) s" >&2
}

build etcd go.etcd.io/etcd/server/v3 etcd
build k8s k8s.io/kubernetes/cmd/kube-apiserver kube-apiserver
build kwok sigs.k8s.io/kwok/cmd/kwok kwok
build k8s k8s.io/kubernetes/cmd/kube-controller-manager kube-controller-manager
build helm helm.sh/helm/v3/cmd/helm helm
if [ ! -x "$bin/vc-controller-manager" ]; then
  # Volcano 1.15 keeps its API module in its own tree, which no module archive contains; the last one that was published
  # lacks one constant that it names (of a feature that its controllers do not have).
  (cd "$here/volcano" && go mod download volcano.sh/apis volcano.sh/volcano)
  rm -rf "$root/apis"
  cp -r "$(cd "$here/volcano" && go list -m -f '{{.Dir}}' volcano.sh/apis)" "$root/apis"
  chmod -R u+w "$root/apis"
  cat >"$root/apis/pkg/apis/scheduling/v1beta1/queue_allocation_gate.go" <<'GO'
package v1beta1

// QueueAllocationGateKey is the scheduling gate by which pods wait for room in their queue.
const QueueAllocationGateKey = "scheduling.volcano.sh/queue-allocation-gate"
GO
  sed "s#\(volcano.sh/apis =>\).*#\1 $root/apis#" "$here/volcano/go.mod" >"$root/volcano.mod"
  cp "$here/volcano/go.sum" "$root/volcano.sum"
  build volcano volcano.sh/volcano/cmd/controller-manager vc-controller-manager "-modfile=$root/volcano.mod"
fi
if [ ! -d "$bin/volcano-chart" ]; then
  module=$(cd "$here/volcano" && go list -m -f '{{.Dir}}' volcano.sh/volcano)
  cp -r "$module/installer/helm/chart/volcano" "$bin/.volcano-chart"
  chmod -R u+w "$bin/.volcano-chart"
  mv "$bin/.volcano-chart" "$bin/volcano-chart"
fi
promcheck >/dev/null
echo "$bin"
