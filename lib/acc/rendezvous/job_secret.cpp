// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/job_secret.hpp"

#include <sodium.h>

#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/rendezvous_plan.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kMinBytes = 16;
constexpr std::size_t kNonceBytes = 32;

void start_sodium() {
  if (sodium_init() < 0)
    throw Error({.kind = ErrorKind::system, .what = "libsodium has no source of random numbers"});
}

std::string to_hex(const unsigned char* bytes, std::size_t count) {
  std::string text(2 * count + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, count);
  text.pop_back();
  return text;
}

// JSON, so that different challenges never give the same text.
std::string text_of(JobSecret::Side side, const JobSecret::Challenge& challenge) {
  const char* role = side == JobSecret::Side::dialer ? "dialer" : "listener";
  return nlohmann::json{"acc link", role, challenge.run_id, challenge.dialer_nonce, challenge.listener_nonce}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

JobSecret::JobSecret(std::string_view text, const std::string& origin) : exists_(true) {
  static_assert(sizeof key_ == crypto_auth_KEYBYTES && sizeof key_ == crypto_generichash_BYTES);
  if (text.size() < kMinBytes) {
    throw Error({.kind = ErrorKind::config,
                 .what = "the secret has less than 16 bytes and can be guessed",
                 .where = origin,
                 .hint = "make one with: openssl rand -hex 32 > secret"});
  }
  start_sodium();
  crypto_generichash(key_.data(), key_.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
}

JobSecret::~JobSecret() {
  sodium_memzero(key_.data(), key_.size());
}

std::string JobSecret::proof(Side side, const Challenge& challenge) const {
  const std::string text = text_of(side, challenge);
  std::array<unsigned char, crypto_auth_BYTES> proof = {};
  crypto_auth(proof.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), key_.data());
  return to_hex(proof.data(), proof.size());
}

bool JobSecret::is_proof(std::string_view proof, Side side, const Challenge& challenge) const {
  const std::string expected = this->proof(side, challenge);
  return proof.size() == expected.size() &&
         sodium_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

JobSecret job_secret(const RendezvousPlan& plan) {
  if (plan.secret) return {*plan.secret, kSecretVariable};
  if (plan.secret_file.empty()) return {};
  std::string text = read_file(plan.secret_file);
  JobSecret secret(trim(text), plan.secret_file.string());
  sodium_memzero(text.data(), text.size());
  return secret;
}

std::string draw_nonce() {
  start_sodium();
  std::array<unsigned char, kNonceBytes> nonce = {};
  randombytes_buf(nonce.data(), nonce.size());
  return to_hex(nonce.data(), nonce.size());
}

}  // namespace acc::launcher
