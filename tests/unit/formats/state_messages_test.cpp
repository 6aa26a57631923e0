// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/state_messages.hpp"

#include <limits>

#include "acc/formats/saved_states.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace state_messages_test {

using acc::StateCandidate;
using acc::test::error_of;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

using Names = std::vector<std::string>;
const std::string kChecksum = "00112233445566778899aabbccddeeff";

// The error for this text of process 2.
template <class Parse>
std::string refusal(Parse parse, const std::string& text) {
  const std::string error = error_of([&] { parse(text, 2); });
  CHECK_THAT(error, StartsWith("process 2: has sent "));
  CHECK(error.size() < 300);
  return error;
}

std::string as_json(const std::string& name) {
  return R"([")" + name + R"("])";
}

}  // namespace

TEST_CASE("state_messages: what is written is read", "[formats]") {
  const Names names = {"model.safetensors", "optimizer_0/__0_0.distcp", "..a", "\xc3\xa4 \"\n"};
  CHECK(acc::parse_file_names(acc::format_file_names(names), 0) == names);
  CHECK(acc::parse_file_names(acc::format_file_names({}), 0).empty());

  const acc::ChecksumsByName checksums = {{"a", kChecksum}, {"b/c", kChecksum}};
  CHECK(acc::parse_checksums(acc::format_checksums(checksums), 0) == checksums);

  const std::vector<StateCandidate> candidates = {{.number = acc::kMaxStateNumber, .id = "a-1"},
                                                  {.number = 0, .disk = "/runs/a b"}};
  CHECK(acc::parse_candidates(acc::format_candidates(candidates), 0) == candidates);

  const acc::FieldsByPiece fields = {{{0, 1, 2}, {{.name = "step", .number = 3}, {.name = "exp_avg"}}},
                                     {{1, 0, std::numeric_limits<std::uint64_t>::max()},
                                      {{.name = "exp_avg"}, {.name = "step", .number = 0.1}}},
                                     {{1, 1, 0}, {}}};
  CHECK(acc::parse_piece_fields(acc::format_piece_fields(fields), 0) == fields);

  CHECK(acc::parse_run_id("a1-Z", 0) == "a1-Z");
}

TEST_CASE("state_messages: the name of a file stays below the folder", "[formats]") {
  for (const char* name : {"", ".", "..", "/", "/etc/passwd", "../model", "a/../../model", "a/..", "a//b",
                           "a/", "./a", R"(a\u0000b)"}) {
    INFO(name);
    CHECK_THAT(refusal(acc::parse_file_names, as_json(name)), Contains("as the name of a file"));
    CHECK_THAT(refusal(acc::parse_checksums, R"([[")" + std::string(name) + R"(",")" + kChecksum + R"("]])"),
               Contains("as the name of a file"));
  }
  CHECK_THAT(refusal(acc::parse_file_names, as_json("../" + std::string(100'000, 'x'))),
             Contains("as the name of a file"));
}

TEST_CASE("state_messages: what is there twice is refused", "[formats]") {
  CHECK_THAT(refusal(acc::parse_file_names, R"(["a","b","a"])"), Contains("has sent 'a' twice"));
  const std::string entry = R"(["a",")" + kChecksum + R"("])";
  CHECK_THAT(refusal(acc::parse_checksums, "[" + entry + "," + entry + "]"), Contains("has sent 'a' twice"));
  CHECK_THAT(refusal(acc::parse_candidates, R"([[1,"a",""],[1,"b",""],[1,"a",""]])"),
             Contains(R"(has sent '[1,"a",""]' twice)"));
  CHECK_THAT(refusal(acc::parse_piece_fields, "[[0,1,2,[]],[0,1,2,[]]]"),
             Contains("has sent 'piece 0.1.2' twice"));
  CHECK_THAT(refusal(acc::parse_piece_fields, R"([[0,1,2,[["step",1],["step",null]]]])"),
             Contains("has sent 'step' twice"));
}

TEST_CASE("state_messages: texts of another form are refused", "[formats]") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& text : {std::string(), std::string("{"), std::string("null"), std::string("\"a\""),
                                  std::string("{\"a\":\"b\"}"), std::string("[1]"), std::string("[[]]"),
                                  std::string("[\"\xff\"]"), std::string("[1e999]"), deep}) {
    INFO(text.substr(0, 20));
    CHECK_THAT(refusal(acc::parse_file_names, text), Contains("something else than names of files"));
    CHECK_THAT(refusal(acc::parse_checksums, text), Contains("something else than checksums of files"));
    CHECK_THAT(refusal(acc::parse_candidates, text), Contains("something else than states"));
    CHECK_THAT(refusal(acc::parse_piece_fields, text), Contains("something else than fields"));
  }
}

TEST_CASE("state_messages: a checksum has 32 digits", "[formats]") {
  for (const std::string& checksum : {std::string(), kChecksum.substr(1), kChecksum + "0",
                                      "X" + kChecksum.substr(1), "A" + kChecksum.substr(1)}) {
    INFO(checksum);
    CHECK_THAT(refusal(acc::parse_checksums, R"([["a",")" + checksum + R"("]])"),
               Contains("something else than checksums of files"));
  }
}

TEST_CASE("state_messages: a state has a number, and an id or an absolute path", "[formats]") {
  for (const char* entry :
       {R"([1,"",""])", R"([1,"a","/runs"])", R"([1,"","runs"])", R"([1,"","/runs\u0000"])", R"([-1,"a",""])",
        R"([1.0,"a",""])", R"(["1","a",""])", R"([true,"a",""])", R"([1000000000000001,"a",""])",
        R"([18446744073709551615,"a",""])", R"([1,"a"])", R"([1,"a","",""])", R"([1,null,"/runs"])"}) {
    INFO(entry);
    CHECK_THAT(refusal(acc::parse_candidates, "[" + std::string(entry) + "]"),
               Contains("something else than states that a machine has"));
  }
}

TEST_CASE("state_messages: the fields of an optimizer are numbers or none", "[formats]") {
  for (const char* entry :
       {R"([0,1,[]])", R"([-1,0,0,[]])", R"([0.5,0,0,[]])", R"([18446744073709551616,0,0,[]])",
        R"([0,0,0,{}])", R"([0,0,0,[["step"]]])", R"([0,0,0,[["step","1"]]])", R"([0,0,0,[["step",[1]]]])",
        R"([0,0,0,[["step",true]]])", R"([0,0,0,[[1,1]]])"}) {
    INFO(entry);
    CHECK_THAT(refusal(acc::parse_piece_fields, "[" + std::string(entry) + "]"),
               Contains("something else than fields of an optimizer"));
  }
}

TEST_CASE("state_messages: a number is in its range, as it is written", "[formats]") {
  const auto parse = [](std::string_view text, int process) {
    return acc::parse_sent_number(text, {.min = -1, .max = 7}, process);
  };
  for (const int number : {-1, 0, 7}) CHECK(parse(std::to_string(number), 2) == number);
  for (const char* text :
       {"", "8", "-2", "07", "+7", " 7", "7 ", "7x", "0x7", "7.0", "18446744073709551623"}) {
    INFO(text);
    CHECK_THAT(refusal(parse, text), Contains("than a number from -1 to 7: '" + std::string(text) + "'"));
  }
  CHECK_THAT(refusal(parse, std::string(100'000, '7')), Contains("than a number from -1 to 7"));
}

TEST_CASE("state_messages: the id of a run is a short word", "[formats]") {
  for (const std::string& id : {std::string(), std::string("a/b"), std::string("a b"), std::string("\xff"),
                                std::string(1, '\0'), std::string(65, 'a')})
    CHECK_THAT(refusal(acc::parse_run_id, id), Contains("something else than the id of a run"));
}

TEST_CASE("state_messages: a name that is not UTF-8 is not sent", "[formats]") {
  constexpr const char* kRefusal = "a\\xff: is not UTF-8";
  CHECK_THAT(error_of([] { acc::format_file_names({"b", "a\xff"}); }), StartsWith(kRefusal));
  CHECK_THAT(error_of([] { acc::format_checksums({{"a\xff", kChecksum}}); }), StartsWith(kRefusal));
}

}  // namespace state_messages_test
