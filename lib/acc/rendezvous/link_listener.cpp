// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/link_listener.hpp"

#include <utility>

#include "acc/base/error.hpp"

namespace acc {
namespace {

constexpr int kVersion = Hello{}.version;
constexpr Greetings::Limits kGreetings = {.patience = std::chrono::seconds(5), .max_guests = 64};
// A node that is not heard yet says little.
constexpr std::size_t kMaxUnheard = 16;

void refuse(Link& link, const std::string& why) {
  link.send(RoundEnds{{.text = why, .exit_code = exit_code(ErrorKind::usage)}});
  link.close();
}

}  // namespace

LinkListener::LinkListener(boost::asio::io_context& loop, const std::vector<std::string>& addresses,
                           std::string run_id, std::chrono::milliseconds patience, Greeted greeted)
    : run_id_(std::move(run_id)),
      patience_(patience),
      greeted_(std::move(greeted)),
      greetings_(std::make_shared<Greetings>(loop, kGreetings)) {
  listeners_ = listen_on(loop, addresses, 0);
  for (const auto& listener : listeners_) {
    listener->start([this](boost::asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
  }
}

LinkListener::~LinkListener() {
  for (const auto& listener : listeners_) listener->close();
  greetings_->close();
}

// The link holds itself until it has ended, and it ends when it stays silent.
void LinkListener::accepted(boost::asio::ip::tcp::socket socket) {
  const auto link = std::make_shared<Link>(std::move(socket), patience_);
  link->hear(
      [this, weak = std::weak_ptr<Link>(link),
       alive = std::weak_ptr<bool>(alive_)](const NodeMessage& message) {
        const auto heard = weak.lock();
        if (heard && alive.expired()) return heard->end();
        if (heard) first_message(heard, message);
      },
      [](const LinkLoss&) {});
  // Whoever has linked is to see at once that this process runs.
  link->send(Beat{});
  link->start_as_stranger();
  greetings_->expect(link);
}

void LinkListener::first_message(const std::shared_ptr<Link>& link, const NodeMessage& message) {
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return link->end();
  if (hello->version != kVersion)
    return refuse(*link, "the nodes of the job run versions of acc that do not fit");
  if (hello->run_id != run_id_)
    return refuse(*link, "this host runs another job than '" + hello->run_id + "'");
  link->greeted();
  auto follower = std::make_shared<Follower>();
  follower->link = link;
  follower->hello = *hello;
  link->hear(
      [weak = std::weak_ptr<Follower>(follower)](NodeMessage next) {
        const auto heard = weak.lock();
        if (!heard) return;
        heard->said.push_back(std::move(next));
        if (heard->said.size() > kMaxUnheard) heard->link->end();
      },
      [](const LinkLoss&) {});
  greeted_(follower);
}

}  // namespace acc
