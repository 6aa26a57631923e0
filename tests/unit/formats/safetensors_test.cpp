// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/safetensors.hpp"

#include <sys/stat.h>

#include <cstring>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace safetensors_test {

using acc::SafetensorsHeader;
using acc::test::error_of;

namespace {

std::string error_in(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  content += json + std::string(data_bytes, 'x');
  return error_of([&] { acc::parse_safetensors_header(content, "m.safetensors"); });
}

std::string refusal(const std::string& why) {
  return "m.safetensors: is not a safetensors file: " + why;
}

}  // namespace

TEST_CASE("safetensors: what is written is read again, in the order of the bytes", "[formats]") {
  const SafetensorsHeader header{.tensors = {{"b", "F32", {2, 3}, 0, 24}, {"a", "BF16", {}, 24, 26}},
                                 .metadata = {{"format", "pt"}},
                                 .data_begin = 0};
  const std::string text = acc::format_safetensors_header(header);
  CHECK(text.size() % 8 == 0);
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("m.safetensors", text + std::string(26, 'x'));
  SafetensorsHeader read = acc::read_safetensors_header(file);
  CHECK(read.data_begin == text.size());
  read.data_begin = 0;
  CHECK(read == header);
}

TEST_CASE("safetensors: what does not fit together is refused with the tensor's name", "[formats]") {
  CHECK(error_in("nothing", 0) == refusal("its header is not a JSON object"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4) ==
        refusal("the bytes of 'a' do not match its shape"));
  CHECK(error_in(R"({"a":{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,3]}})", 3) ==
        refusal("the bytes of 'a' do not match its shape"));  // within a byte
  CHECK(error_in(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", 4) ==
        refusal("'a' has the unknown dtype F3"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8) ==
        refusal("there is a gap or an overlap before 'a'"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3) ==
        refusal("its header describes 4 bytes of tensors, the file has 3"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0) ==
        refusal("the bytes of 'a' do not match its shape"));
  CHECK(error_in(R"({"a":{"dtype":"F32"}})", 0) ==
        refusal("dtype, shape or data_offsets of 'a' are missing or invalid"));
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4) ==
        refusal("the shape of 'a' has an invalid size"));
}

TEST_CASE("safetensors: a truncated file is refused", "[formats]") {
  const acc::test::TemporaryFolder folder;
  const auto error = [&](const std::string& bytes) {
    const auto file = folder.write("m.safetensors", bytes);
    return error_of([&] { acc::read_safetensors_header(file); });
  };
  CHECK(error("abc").ends_with("is not a safetensors file: it is too short"));
  CHECK(error(std::string("\x10\0\0\0\0\0\0\0{", 9)).ends_with("its header is truncated"));
  CHECK(error(std::string(8, '\xff')).ends_with("its header is truncated"));
  CHECK(error_of([&] { acc::read_safetensors_header(folder.path() / "none"); }).find("cannot be read") !=
        std::string::npos);
}

TEST_CASE("safetensors: a size that no tensor has is refused", "[formats]") {
  CHECK(error_in(R"({"a":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}})", 0) ==
        refusal("the shape of 'a' has an invalid size"));
}

TEST_CASE("safetensors: a pipe is refused, and nobody waits for it", "[formats]") {
  const acc::test::TemporaryFolder folder;
  const auto pipe = folder.path() / "m.safetensors";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(
      error_of([&] { acc::read_safetensors_header(pipe); }).starts_with(pipe.string() + ": cannot be read"));
}

TEST_CASE("safetensors: dtypes have widths, and unknown ones none", "[formats]") {
  CHECK(acc::bits_of("F32") == 32);
  CHECK(acc::bits_of("BF16") == 16);
  CHECK(acc::bits_of("F4") == 4);
  CHECK(acc::bits_of("F8_E4M3FNUZ") == 8);
  CHECK_FALSE(acc::bits_of("float32"));
}

}  // namespace safetensors_test
