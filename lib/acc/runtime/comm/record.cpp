// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/record.hpp"

#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/error_file_fields.hpp"
#include "acc/base/files.hpp"
#include "acc/base/lost_peer.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/comm/uncaught.hpp"

namespace acc {
namespace {

using Json = nlohmann::ordered_json;

std::terminate_handler handler_before = nullptr;
std::mutex explain_mutex;
detail::ExplainUncaught explain_uncaught;

// What this process has lost so far.
struct Loss {
  bool any = false;
  std::vector<int> ranks = {};
};

std::string in_torch_form(std::string_view message, const Loss& loss) {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  // torchrun reads whole seconds; acc compares exact times on a machine. py_callstack is left out because
  // torchrun would show it instead of the message, even if empty.
  Json extra = {{error_field::kTimestamp, std::to_string(floor<seconds>(now).count())},
                {error_field::kTimestampUs, std::to_string(floor<microseconds>(now).count())},
                {error_field::kConsequence, loss.any}};
  if (!loss.ranks.empty()) extra[error_field::kLostRanks] = loss.ranks;
  const Json document = {
      {error_field::kMessage, {{error_field::kMessage, message}, {error_field::kExtraInfo, extra}}}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void record_uncaught(const std::exception& error) {
  const std::scoped_lock lock(explain_mutex);
  if (const auto explained = explain_uncaught ? explain_uncaught(error) : std::nullopt) {
    write_error_file(explained->text, FailureRole::consequence, explained->lost_ranks);
  } else {
    write_error_file(detail::describe_exception(error));
  }
}

[[noreturn]] void record_and_terminate() {
  // The launcher asks the others to end when it sees the first failure: this process still ends by SIGABRT.
  std::signal(SIGTERM, SIG_IGN);
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const std::exception& error) {
      record_uncaught(error);
    } catch (...) {
      write_error_file("an exception that is not a std::exception");
    }
  }
  if (handler_before != nullptr) handler_before();
  std::abort();
}

}  // namespace

void write_error_file(std::string_view message, FailureRole role,
                      const std::vector<int>& lost_ranks) noexcept {
  static std::mutex mutex;
  static Loss loss;
  try {
    const std::scoped_lock lock(mutex);
    loss.any = loss.any || role == FailureRole::consequence || names_lost_peer(message);
    if (!lost_ranks.empty()) loss.ranks = lost_ranks;
    const std::string file = Environment::of_process().get("TORCHELASTIC_ERROR_FILE");
    if (file.empty()) return;
    replace_file(file, in_torch_form(message, loss));
  } catch (const std::exception&) {  // NOLINT: an error here must not hide the failure itself
  }
}

namespace detail {

void explain_uncaught_exceptions(ExplainUncaught explain) {
  const std::scoped_lock lock(explain_mutex);
  explain_uncaught = std::move(explain);
}

std::string describe_exception(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    const CudaTable* const* table = std::get_if<const CudaTable*>(&cuda_plugin());
    if (const auto failure = table == nullptr ? std::nullopt : (*table)->last_out_of_memory())
      return explain_out_of_memory(*failure).what();
  }
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return fmt::format("{}: {}", c10::demangle(typeid(error).name()),
                     from_torch != nullptr ? from_torch->what_without_backtrace() : error.what());
}

}  // namespace detail

void record_uncaught_exceptions() {
  static std::once_flag once;
  std::call_once(once, [] { handler_before = std::set_terminate(record_and_terminate); });
}

}  // namespace acc
