// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/own_error_file.hpp"

#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::ordered_json;

int python_exit_code(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) return -signaled->signal;
  return std::get<Exited>(status).code;
}

std::string to_text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string with_error_code(std::string_view text, const ExitStatus& status) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("message") || !document["message"].is_object())
    return std::string(text);
  document["message"]["errorCode"] = python_exit_code(status);
  return to_text(document);
}

std::string to_error_json(std::string_view message, std::string_view traceback,
                          std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when.time_since_epoch()).count();
  Json extra = {{"timestamp", std::to_string(seconds)}};
  // torchrun would show an empty one in place of the message.
  if (!traceback.empty()) extra["py_callstack"] = traceback;
  return to_text({{"message", {{"message", message}, {"extraInfo", std::move(extra)}}}});
}

void leave_error_file(const std::filesystem::path& file, const WorkerFailure& failure) {
  if (file.empty() || !failure.error_file) return;
  const ErrorFile& error = *failure.error_file;
  std::error_code ignored;
  const std::string text =
      std::filesystem::exists(error.path, ignored)
          ? read_file(error.path)
          : to_error_json(error.message, error.traceback, error.when.value_or(failure.when));
  replace_file(file, with_error_code(text, failure.status));
}

}  // namespace acc::launcher
