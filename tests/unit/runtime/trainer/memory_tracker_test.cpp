// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/memory_tracker.hpp"

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>

#include "support/catch.hpp"

namespace memory_tracker_test {

using acc::Metrics;
using acc::detail::MemoryTracker;

namespace {

constexpr double kMiB = 1 << 20;
// What else the process does meanwhile, and what the kernel takes of its mapped libraries where memory is
// short. Sanitizers have memory of their own for that of the program.
#if defined(__SANITIZE_THREAD__)
constexpr double kMargin = 1000 * kMiB;  // four bytes for each
#elif defined(__SANITIZE_ADDRESS__)
constexpr double kMargin = 500 * kMiB;
#else
constexpr double kMargin = 25 * kMiB;
#endif

// Memory that the kernel gets back at its end.
class Pages {
 public:
  explicit Pages(std::size_t mebibytes) : size_(mebibytes << 20U) {
    address_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address_ == MAP_FAILED) throw std::runtime_error("mmap");
    std::memset(address_, 1, size_);
  }
  ~Pages() { ::munmap(address_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  std::size_t size_;
  void* address_;
};

}  // namespace

TEST_CASE("memory tracker: a stage says what stays and what there was at most, init with the first",
          "[runtime]") {
  MemoryTracker tracker(true);
  const Pages of_init(60);
  tracker.end_init(at::kCPU);
  Metrics metrics;
  const auto train = tracker.begin("train");
  Pages(300);
  const Pages staying(120);
  tracker.end("train", metrics);
  CHECK(metrics.size() == 5);
  CHECK(metrics.at("before_init_mem_cpu") > kMiB);
  CHECK(metrics.at("init_mem_cpu_alloc_delta") == Approx(60 * kMiB).margin(kMargin));
  CHECK(metrics.at("train_mem_cpu_alloc_delta") == Approx(120 * kMiB).margin(kMargin));
  if (!acc::detail::reset_process_peak()) return;
  CHECK(metrics.at("init_mem_cpu_peaked_delta") < kMargin);
  CHECK(metrics.at("train_mem_cpu_peaked_delta") == Approx(180 * kMiB).margin(kMargin));
}

TEST_CASE("memory tracker: a stage within another is not one, and one that throws ends", "[runtime]") {
  MemoryTracker tracker(true);
  tracker.end_init(at::kCPU);
  Metrics metrics;
  {
    const auto train = tracker.begin("train");
    const auto eval = tracker.begin("eval");
    tracker.end("eval", metrics);
    CHECK(metrics.empty());
  }
  const auto eval = tracker.begin("eval");
  tracker.end("eval", metrics);
  CHECK(metrics.contains("eval_mem_cpu_alloc_delta"));
  CHECK_FALSE(metrics.contains("train_mem_cpu_alloc_delta"));
}

TEST_CASE("memory tracker: a stage within one of the same name is not one either", "[runtime]") {
  MemoryTracker tracker(true);
  tracker.end_init(at::kCPU);
  Metrics metrics;
  const auto eval = tracker.begin("eval");
  {
    const auto nested = tracker.begin("eval");
    tracker.end("eval", metrics);
    CHECK(metrics.empty());
  }
  tracker.end("eval", metrics);
  CHECK(metrics.contains("eval_mem_cpu_alloc_delta"));
}

TEST_CASE("memory tracker: nothing is told unless it is wanted", "[runtime]") {
  MemoryTracker tracker(false);
  tracker.end_init(at::kCPU);
  Metrics metrics;
  const auto train = tracker.begin("train");
  tracker.end("train", metrics);
  CHECK(metrics.empty());
}

}  // namespace memory_tracker_test
