// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/safetensors_header.hpp"

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

using acc::launcher::parse_safetensors_header;
using acc::launcher::SafetensorsHeader;
using acc::test::error_of;

namespace {

std::string error_in(const std::string& json, std::uint64_t bytes) {
  return error_of([&] { parse_safetensors_header(json, bytes, "m.safetensors"); });
}

std::string refusal(const std::string& why) {
  return "m.safetensors: is no safetensors file: " + why;
}

}  // namespace

TEST_CASE("safetensors_header: what is written is read again, in the order of the bytes", "[weights]") {
  const SafetensorsHeader header{.tensors = {{"b", "F32", {2, 3}, 0, 24}, {"a", "BF16", {}, 24, 26}},
                                 .metadata = {{"format", "pt"}},
                                 .data_begin = 0};
  const std::string text = acc::launcher::format_safetensors_header(header);
  CHECK(text.size() % 8 == 0);
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("m.safetensors", text + std::string(26, 'x'));
  SafetensorsHeader read = acc::launcher::read_safetensors_header(file);
  CHECK(read.data_begin == text.size());
  read.data_begin = 0;
  CHECK(read == header);
}

TEST_CASE("safetensors_header: what does not fit together is refused with the tensor's name", "[weights]") {
  CHECK(error_in("nothing", 0) == refusal("its head is no JSON"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4) ==
        refusal("the bytes of 'a' do not fit its shape"));
  CHECK(error_in(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", 4) ==
        refusal("'a' is of the unknown type F3"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8) ==
        refusal("there is a gap or an overlap before 'a'"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3) ==
        refusal("it has 3 bytes of tensors and tells of 4"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0) ==
        refusal("the bytes of 'a' do not fit its shape"));
  CHECK(error_in(R"({"a":{"dtype":"F32"}})", 0) == refusal("it says too little about 'a'"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4) ==
        refusal("the shape of 'a' has no such size"));
}

TEST_CASE("safetensors_header: a file that is cut is refused", "[weights]") {
  const acc::test::TemporaryFolder folder;
  const auto error = [&](const std::string& bytes) {
    const auto file = folder.write("m.safetensors", bytes);
    return error_of([&] { acc::launcher::read_safetensors_header(file); });
  };
  CHECK(error("abc").ends_with("is no safetensors file: it is too short"));
  CHECK(error(std::string("\x10\0\0\0\0\0\0\0{", 9)).ends_with("its head is cut"));
  CHECK(error(std::string(8, '\xff')).ends_with("its head is cut"));
  CHECK(error_of([&] {
          acc::launcher::read_safetensors_header(folder.path() / "none");
        }).find("cannot be read") != std::string::npos);
}

TEST_CASE("safetensors_header: a size that no tensor has is refused", "[weights]") {
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}})", 0) ==
        refusal("the shape of 'a' has no such size"));
}

TEST_CASE("safetensors_header: a pipe is refused, and nobody waits for it", "[weights]") {
  const acc::test::TemporaryFolder folder;
  const auto pipe = folder.path() / "m.safetensors";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] {
          acc::launcher::read_safetensors_header(pipe);
        }).starts_with(pipe.string() + ": cannot be read"));
}
