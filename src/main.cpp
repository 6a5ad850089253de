// Hands argv to the commands.
#include "recibo/commands/run.hpp"

int main(int argc, char** argv) { return recibo::commands::run(argc, argv); }
