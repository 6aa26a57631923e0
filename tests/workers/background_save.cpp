// SPDX-License-Identifier: Apache-2.0
// background_save FOLDER returns|exits|throws|fails|exits_and_fails: saves a state of 4 MB in the background,
// as checkpoint 2, and leaves main at once: by return, by exit(), by an exception, or by return or exit()
// although files cannot grow that far.
// background_save FOLDER reads: says which checkpoint is in the folder.
#include <sys/resource.h>
#include <torch/nn/modules/linear.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "acc/accelerator.hpp"
#include "acc/checkpoint.hpp"
#include "acc/error.hpp"

namespace {

struct Number {
  std::int64_t value = 0;
  acc::PtValue state() const { return value; }
  void load_state(const acc::PtValue& state) { value = static_cast<std::int64_t>(state.number().value()); }
};

void limit_files() {
  constexpr rlim_t kBytes = 1 << 20;
  const rlimit limit = {kBytes, kBytes};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void save(const std::string& folder, const std::string& how) {
  acc::Accelerator accelerator;
  auto model = accelerator.prepare(torch::nn::Linear(1024, 1024));
  Number number;
  accelerator.register_for_checkpointing(number);
  if (how == "reads") {
    accelerator.load_state(folder);
    accelerator.print("checkpoint " + std::to_string(number.value));
    return;
  }
  number.value = 1;
  accelerator.save_state(folder);
  number.value = 2;
  if (how.ends_with("fails")) limit_files();
  accelerator.save_state(folder, {.background = true});
  if (how.starts_with("exits")) std::exit(0);
  if (how == "throws") throw std::runtime_error("the program's own error");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw acc::Error({.what = "needs a folder and how to end", .where = argv[0]});
  save(argv[1], argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
