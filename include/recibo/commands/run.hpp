// The command line of the binary (contract section 2).
#pragma once

namespace recibo::commands {

// Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use or wrong configuration, 3 a dependency is away.
int run(int argc, char** argv);

}  // namespace recibo::commands
