// SPDX-License-Identifier: Apache-2.0
// What tests/notebook shows of whole jobs is not repeated here.
#include "acc/notebook/notebook_launcher.hpp"

#include <memory>

#include "support/catch.hpp"

namespace notebook_launcher_test {

using namespace acc;

namespace {

double scaled(double factor, const std::vector<int>& values) {
  return factor * values.front();
}

// In the place of a launch: two workers in this process.
std::vector<std::string> twice(const acc::detail::WorkerFunction& function) {
  return {function(), function()};
}

template <class Function, class... Arguments>
auto launch(Function function, std::tuple<Arguments...> arguments) {
  return acc::detail::launch_and_read(twice, function, arguments);
}

}  // namespace

TEST_CASE("notebook_launcher: results have the function's type, by rank", "[notebook]") {
  const std::vector<double> results = launch([] { return 2.5; }, std::tuple<>());
  CHECK(results == std::vector{2.5, 2.5});
  static_assert(std::is_void_v<decltype(launch([] {}, std::tuple<>()))>);
  static_assert(std::is_same_v<decltype(launch([] { return std::string(); }, std::tuple<>())),
                               std::vector<std::string>>);
}

TEST_CASE("notebook_launcher: arguments go to the function as std::thread's do", "[notebook]") {
  CHECK(launch(scaled, std::tuple{0.5, std::vector{4}}).front() == 2);
  int seen = 0;
  launch([](int& total) { ++total; }, std::tuple{std::ref(seen)});
  CHECK(seen == 2);
  bool moved = false;
  launch([&](std::unique_ptr<int> owned) { moved = moved || owned != nullptr; },
         std::tuple{std::make_unique<int>(1)});
  CHECK(moved);
}

}  // namespace notebook_launcher_test
