// SPDX-License-Identifier: Apache-2.0
#include "process_checks.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace acc::selftest {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers count_to(std::size_t size) {
  Numbers numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// What all processes have together, in rank order; each has `size` of it.
Numbers gathered(Accelerator& accelerator, const Numbers& own) {
  const at::Tensor all = accelerator.gather(at::tensor(own));
  return {all.const_data_ptr<std::int64_t>(), all.const_data_ptr<std::int64_t>() + all.numel()};
}

Complaint check_list(Accelerator& accelerator, std::size_t size, bool pad) {
  const Numbers list = count_to(size);
  Numbers all = gathered(accelerator, accelerator.split_between_processes(list, pad));
  if (all.size() < size) return "lost elements";
  all.resize(size);
  return all == list ? "" : "gave another order";
}

// The first `17 % processes` processes get one more.
Complaint check_uneven_list(Accelerator& accelerator) {
  constexpr std::size_t kSize = 17;
  const auto rank = static_cast<std::size_t>(accelerator.process_index());
  const auto size = static_cast<std::size_t>(accelerator.num_processes());
  const Numbers own = accelerator.split_between_processes(count_to(kSize));
  return own.size() == kSize / size + (rank < kSize % size ? 1 : 0) ? ""
                                                                    : "cut 17 elements at the wrong place";
}

Complaint check_structure(Accelerator& accelerator) {
  const auto size = 2 * static_cast<std::size_t>(accelerator.num_processes());
  const auto own = accelerator.split_between_processes(
      std::map<std::string, Numbers>{{"first", count_to(size)}, {"second", count_to(size)}});
  return own.at("first").size() == 2 && own.at("first") == own.at("second") ? "" : "cut a map unevenly";
}

Complaint check_rows(Accelerator& accelerator) {
  const std::int64_t rows = 2 * accelerator.num_processes() - 1;
  const at::Tensor tensor = at::arange(rows, at::kLong);
  const at::Tensor all = accelerator.gather(accelerator.split_between_processes(tensor, true));
  return all.slice(0, 0, rows).equal(tensor) ? "" : "gave rows in another order";
}

}  // namespace

Complaint check_where_functions_run(Accelerator& accelerator) {
  bool main = false;
  bool local_main = false;
  bool last = false;
  bool chosen = false;
  const int choice = accelerator.num_processes() / 2;
  accelerator.on_main_process([&] { main = true; });
  accelerator.on_local_main_process([&] { local_main = true; });
  accelerator.on_last_process([&] { last = true; });
  accelerator.on_process(choice, [&] { chosen = true; });
  if (main != accelerator.is_main_process()) return "on_main_process";
  if (local_main != accelerator.is_local_main_process()) return "on_local_main_process";
  if (last != accelerator.is_last_process()) return "on_last_process";
  return chosen == (accelerator.process_index() == choice) ? "" : "on_process";
}

Complaint check_splitting(Accelerator& accelerator) {
  const auto twice = 2 * static_cast<std::size_t>(accelerator.num_processes());
  for (const Complaint& complaint :
       {check_list(accelerator, twice, false), check_list(accelerator, twice - 1, true),
        check_uneven_list(accelerator), check_structure(accelerator), check_rows(accelerator)}) {
    if (!complaint.empty()) return complaint;
  }
  return {};
}

Complaint check_trigger(Accelerator& accelerator) {
  if (accelerator.check_trigger()) return "is set before anyone set it";
  accelerator.on_main_process([&] { accelerator.set_trigger(); });
  if (!accelerator.check_trigger()) return "was set on the main process, and not seen";
  return accelerator.check_trigger() ? "is still set after it was seen" : "";
}

}  // namespace acc::selftest
