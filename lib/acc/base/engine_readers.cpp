// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine_readers.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "acc/base/text.hpp"

namespace acc::engines {

Number read_number(const Environment& environment, std::string_view name, int min) {
  const auto text = name.empty() ? std::nullopt : environment.find(name);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < min || *number > std::numeric_limits<int>::max())
    refuse_value(name, fmt::format("must be a whole number of at least {}, not '{}'", min, shorten(*text)));
  return EngineValue<int>{static_cast<int>(*number), std::string(name)};
}

void refuse_value(std::string_view name, std::string what) {
  throw Error({.what = std::move(what),
               .where = std::string(name),
               .hint = "the engine sets it; --engine none ignores it"});
}

std::string assignment(const Environment& environment, std::string_view name) {
  return fmt::format("{}={}", name, shorten(environment.get(name)));
}

Problem incomplete(const Engine& engine, const std::string& found, std::string_view missing) {
  return {.what = fmt::format("{} found, but not {}: the rank of this process in the job of {} is not known",
                              found, missing, engine.name),
          .hint = "give --nnodes, --node-rank and --master-addr, or --engine none"};
}

}  // namespace acc::engines
