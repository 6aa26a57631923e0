// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/json_lines_tracker.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "acc/runtime/tracking/seconds_since_1970.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

// The lines without their times, which must be of now.
std::vector<std::string> lines_without_time(const std::string& text, double began) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::ordered_json object = nlohmann::ordered_json::parse(line);
    const double time = object.at("time").get<double>();
    CHECK((time >= began && time <= acc::seconds_since_1970()));
    object.erase("time");
    lines.push_back(object.dump());
  }
  return lines;
}

}  // namespace

TEST_CASE("JSON lines: one object for the start and one for each log, all kinds of values", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const double began = acc::seconds_since_1970();
  acc::JsonLinesTracker tracker(folder.path());
  tracker.start("mnist", {{"lr", 1e-5}, {"batch", 8}, {"net", "cnn"}, {"amp", true}});
  tracker.log({{"loss", 0.5F}, {"seen", std::size_t{3}}, {"note", "a \"b\"\n"}}, 1);
  tracker.log({{"accuracy", acc::TrackedGroup{{"train", 0.75}, {"test", 0.5}}}}, std::nullopt);
  tracker.log({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"text", "\xff"}}, 2);
  CHECK(lines_without_time(folder.read("mnist.jsonl"), began) ==
        std::vector<std::string>{
            R"({"project":"mnist","config":{"amp":true,"batch":8,"lr":1e-05,"net":"cnn"}})",
            R"({"step":1,"values":{"loss":0.5,"note":"a \"b\"\n","seen":3}})",
            R"({"values":{"accuracy":{"test":0.5,"train":0.75}}})",
            "{\"step\":2,\"values\":{\"loss\":null,\"text\":\"\ufffd\"}}"});
}

TEST_CASE("JSON lines: a later training goes on in the file, after its last whole line", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("mnist.jsonl", "{\"step\":1,\"time\":1,\"values\":{}}\n{\"step\":2,\"ti");
  acc::JsonLinesTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({}, 2);
  CHECK(lines_without_time(folder.read("mnist.jsonl"), 0) ==
        std::vector<std::string>{R"({"step":1,"values":{}})", R"({"project":"mnist","config":{}})",
                                 R"({"step":2,"values":{}})"});
}
