// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/estimate_table.hpp"

#include "support/catch.hpp"
#include "support/recordings.hpp"

TEST_CASE("estimate_table: sizes are written as Python rounds them", "[weights]") {
  CHECK(acc::launcher::size_text(1023) == "1023 bytes");
  CHECK(acc::launcher::size_text(1024) == "1.0 KB");
  CHECK(acc::launcher::size_text(875874304) == "835.3 MB");
  CHECK(acc::launcher::size_text(1751748608) == "1.63 GB");
  CHECK(acc::launcher::size_text(2.0 * (1ULL << 50U)) == "2.0 PB");
}

TEST_CASE("estimate_table: frames are drawn as recorded, whatever the title's length", "[weights]") {
  const auto recorded = acc::test::recording("estimate_tables");
  const auto rows = recorded.at("rows").get<std::vector<std::vector<std::string>>>();
  const auto headers = recorded.at("headers").get<std::vector<std::string>>();
  for (const auto& [title, table] : recorded.at("tables").items()) {
    INFO(title);
    CHECK(acc::launcher::framed_table(title, headers, rows) == table.get<std::string>() + "\n");
  }
}

TEST_CASE("estimate_table: a model's table is the recorded one", "[weights]") {
  const std::string name = GENERATE("bert_base", "llama_tiny");
  const auto recorded = acc::test::recording("estimate_" + name);
  const acc::launcher::ModelSize size{recorded.at("total_bytes").get<std::int64_t>(),
                                      recorded.at("largest_bytes").get<std::int64_t>(), 0};
  CHECK(acc::launcher::estimate_table(name, size, {"float32", "float16", "int8", "int4"}) ==
        recorded.at("table").get<std::string>());
}
