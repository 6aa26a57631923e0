// SPDX-License-Identifier: Apache-2.0
// What `acc test` starts on every process: tries what a training needs, and says what works.

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "acc/base/error.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

constexpr std::array kChecks = {
    Check{"state", check_state},
    Check{"process order", check_process_order},
    Check{"collectives", check_collectives},
    Check{"sharded loading", check_sharded_loading},
    Check{"shuffled loading", check_shuffled_loading},
    Check{"random state", check_random_state},
    Check{"training parity", check_training},
    Check{"bf16 training", check_bf16_training},
};

// The first complaint of any process, with its rank.
Complaint agree(Accelerator& accelerator, const Complaint& own) {
  constexpr std::size_t kMost = 256;
  at::Tensor text = at::zeros({static_cast<std::int64_t>(kMost)}, at::kByte);
  std::memcpy(text.data_ptr(), own.data(), std::min(own.size(), kMost - 1));
  const at::Tensor all = accelerator.gather(text);
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    const std::string complaint =
        static_cast<const char*>(all.data_ptr()) + kMost * static_cast<std::size_t>(rank);
    if (!complaint.empty()) return "rank " + std::to_string(rank) + ": " + complaint;
  }
  return {};
}

// True when all went well on all processes.
bool run_checks(Accelerator& accelerator) {
  std::size_t passed = 0;
  for (const Check& check : kChecks) {
    const Complaint complaint = agree(accelerator, check.run(accelerator));
    if (complaint.empty()) ++passed;
    if (!accelerator.is_main_process()) continue;
    std::printf("%s ... %s\n", std::string(check.name).c_str(),
                complaint.empty() ? "ok" : ("FAILED: " + complaint).c_str());
    std::fflush(stdout);
  }
  if (accelerator.is_main_process()) {
    const int processes = accelerator.num_processes();
    std::printf("%zu of %zu checks passed on %d process%s\n", passed, kChecks.size(), processes,
                processes == 1 ? "" : "es");
  }
  return passed == kChecks.size();
}

int run(int argc, char** argv) {
  int expected = 0;
  CLI::App app("Checks on every process what a training needs; `acc test` starts it");
  app.add_option("--expect-processes", expected, "Fail unless there are this many processes")
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Accelerator accelerator;
  if (expected > 0 && accelerator.num_processes() != expected) {
    if (accelerator.is_main_process()) {
      std::fprintf(stderr, "acc-selftest: runs on %d processes, not on %d\n", accelerator.num_processes(),
                   expected);
    }
    return 1;
  }
  return run_checks(accelerator) ? 0 : 1;
}

}  // namespace
}  // namespace acc::selftest

int main(int argc, char** argv) try {
  return acc::selftest::run(argc, argv);
} catch (const acc::Error& error) {
  std::fprintf(stderr, "acc-selftest: %s\n", error.what());
  return 1;
} catch (const c10::Error& error) {
  std::fprintf(stderr, "acc-selftest: LibTorch: %s\n", error.what_without_backtrace());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "acc-selftest: %s\n", error.what());
  return 1;
}
