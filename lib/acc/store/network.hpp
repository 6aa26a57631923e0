// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/tcp.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>

#include "acc/base/event_loop.hpp"
#include "acc/base/own_addresses.hpp"

/// What the rendezvous and its store take of Asio's sockets, and how this machine is called; see
/// `acc/base/event_loop.hpp`.
namespace acc::net {

namespace error = boost::asio::error;
namespace ip = boost::asio::ip;
using acc::address_towards;
using acc::look_up;
using acc::own_names;
using boost::asio::async_read;
using boost::asio::async_write;
using boost::asio::buffer;
using boost::asio::const_buffer;
using boost::asio::socket_base;
using boost::asio::ip::tcp;

/// How many milliseconds TCP retransmits what is not acknowledged.
using user_timeout = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

}  // namespace acc::net
