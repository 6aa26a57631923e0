// SPDX-License-Identifier: Apache-2.0
#include "measurements.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "acc/base/error.hpp"
#include "acc/base/machine.hpp"
#include "report.hpp"

namespace acc::selftest {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// The time of the fastest of several runs, the one least disturbed by other programs. `function` returns a
// tensor; since devices run asynchronously, reading an element of it waits for the result.
template <class Function>
double best_of(int times, Function function) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const Stopwatch watch;
    function().reshape({-1})[0].item();
    best = std::min(best, watch.seconds());
  }
  return best;
}

at::Tensor bytes_on(const Accelerator& accelerator, std::int64_t bytes) {
  return at::ones({bytes / static_cast<std::int64_t>(sizeof(float))},
                  at::TensorOptions(at::kFloat).device(accelerator.device()));
}

// Sends a tensor to the partner and back; the lower rank begins.
at::Tensor bounce(c10d::ProcessGroup& group, int partner, std::vector<at::Tensor>& ball) {
  if (group.getRank() < partner) {
    group.send(ball, partner, 0)->wait();
    group.recv(ball, partner, 0)->wait();
  } else {
    group.recv(ball, partner, 0)->wait();
    group.send(ball, partner, 0)->wait();
  }
  return ball.front();
}

Link measure_link(Accelerator& accelerator, c10d::ProcessGroup& group, int partner) {
  constexpr std::int64_t kBytes = 1 << 20;
  const int rank = group.getRank();
  Link link{.first = std::min(rank, partner), .second = std::max(rank, partner)};
  try {
    std::vector<at::Tensor> small{bytes_on(accelerator, sizeof(float))};
    std::vector<at::Tensor> large{bytes_on(accelerator, kBytes)};
    double small_seconds = std::numeric_limits<double>::infinity();
    double large_seconds = small_seconds;
    // In turns: another program that takes a core for some milliseconds does not spoil all of one kind.
    for (int turn = 0; turn < 4; ++turn) {
      small_seconds = std::min(small_seconds, best_of(5, [&] { return bounce(group, partner, small); }));
      large_seconds = std::min(large_seconds, best_of(2, [&] { return bounce(group, partner, large); }));
    }
    link.latency_seconds = small_seconds / 2;
    link.bytes_per_second = kBytes / (large_seconds / 2);
  } catch (const std::exception& error) {
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("ranks {} and {} cannot reach each other", link.first, link.second),
                 .where = fmt::format("rank {}", rank)});
  }
  return link;
}

}  // namespace

std::vector<std::string> gather_texts(Accelerator& accelerator, const std::string& text) {
  constexpr std::size_t kMaxText = 256;
  at::Tensor own = at::zeros({static_cast<std::int64_t>(kMaxText)}, at::kByte);
  std::memcpy(own.data_ptr(), text.data(), std::min(text.size(), kMaxText - 1));
  const at::Tensor all = accelerator.gather(own);
  std::vector<std::string> texts;
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    texts.emplace_back(static_cast<const char*>(all.data_ptr()) + kMaxText * static_cast<std::size_t>(rank));
  }
  return texts;
}

std::vector<Link> measure_links(Accelerator& accelerator) {
  if (!accelerator.process_group()) return {};
  c10d::ProcessGroup& group = accelerator.process_group()->native();
  const int ranks = group.getSize();
  const int rounds = num_rounds(ranks);
  // A row for each round: the partner, latency, bytes per second.
  at::Tensor local_rounds = at::full({rounds, 3}, -1, at::kDouble);
  for (int round = 0; round < rounds; ++round) {
    const auto partner = partner_of(group.getRank(), round, ranks);
    if (!partner) continue;
    const Link link = measure_link(accelerator, group, *partner);
    local_rounds[round][0] = *partner;
    local_rounds[round][1] = link.latency_seconds;
    local_rounds[round][2] = link.bytes_per_second;
  }
  const at::Tensor all = accelerator.gather(local_rounds).view({ranks, rounds, 3});
  std::vector<Link> links;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int round = 0; round < rounds; ++round) {
      const at::Tensor row = all[rank][round];
      const int partner = row[0].item<int>();
      if (partner < rank) continue;
      links.push_back({.first = rank,
                       .second = partner,
                       .latency_seconds = row[1].item<double>(),
                       .bytes_per_second = row[2].item<double>()});
    }
  }
  return links;
}

std::vector<AllReduce> measure_all_reduce(Accelerator& accelerator) {
  constexpr std::array<std::int64_t, 8> kSizes = {4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                                  1 << 20, 4 << 20,  16 << 20, 64 << 20};
  constexpr std::int64_t kBytesPerSize = 64 << 20;
  constexpr std::int64_t kMinTimes = 2;
  constexpr std::int64_t kMaxTimes = 20;
  if (!accelerator.process_group()) return {};
  c10d::ProcessGroup& group = accelerator.process_group()->native();
  const double ranks = group.getSize();
  std::vector<AllReduce> results;
  for (const std::int64_t bytes : kSizes) {
    std::vector<at::Tensor> tensors{bytes_on(accelerator, bytes)};
    const auto times = static_cast<int>(std::clamp(kBytesPerSize / bytes, kMinTimes, kMaxTimes));
    accelerator.wait_for_everyone();
    const double duration = best_of(times, [&] {
      group.allreduce(tensors)->wait();
      return tensors.front();
    });
    const double seconds =
        accelerator.reduce(at::full({}, duration, at::kDouble), ReduceOp::max).item<double>();
    results.push_back(
        {.bytes = bytes,
         .seconds = seconds,
         .bus_bytes_per_second = static_cast<double>(bytes) * 2 * (ranks - 1) / ranks / seconds});
  }
  return results;
}

std::vector<Copy> measure_copy(Accelerator& accelerator) {
  const std::int64_t bytes = (accelerator.device().is_cpu() ? 64 : 512) << 20;
  const at::Tensor from = bytes_on(accelerator, bytes);
  const at::Tensor to = bytes_on(accelerator, bytes);
  accelerator.wait_for_everyone();
  const double own = best_of(10, [&] { return to.copy_(from); });
  const at::Tensor seconds = accelerator.gather(at::full({}, own, at::kDouble));
  std::vector<Copy> results;
  for (int rank = 0; rank < accelerator.num_processes(); ++rank)
    results.push_back(
        {.rank = rank, .bytes_per_second = static_cast<double>(bytes) / seconds[rank].item<double>()});
  return results;
}

std::vector<Compute> measure_matmul(Accelerator& accelerator) {
  const std::int64_t size = accelerator.device().is_cpu() ? 512 : 4096;
  const at::Tensor a =
      at::full({size, size}, 0.5, at::TensorOptions(at::kFloat).device(accelerator.device()));
  accelerator.wait_for_everyone();
  const double own = best_of(20, [&] { return at::mm(a, a); });
  const at::Tensor seconds = accelerator.gather(at::full({}, own, at::kDouble));
  const std::vector<std::string> hosts = gather_texts(accelerator, host_name());
  std::vector<Compute> results;
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    const auto side = static_cast<double>(size);
    const double duration = seconds[rank].item<double>();
    results.push_back({.rank = rank,
                       .host = hosts[static_cast<std::size_t>(rank)],
                       .seconds = duration,
                       .flops_per_second = 2 * side * side * side / duration});
  }
  return results;
}

}  // namespace acc::selftest
