// The one translation unit that compiles Asio's and Beast's non-template code.
#include <ostream>

#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
