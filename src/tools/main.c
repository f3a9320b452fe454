/* The command line tool: one binary, a table of subcommands. */

#include <string.h>

#include "commands.h"
#include "tool.h"

static const struct command commands[] = {
    { "run",        "answer a prompt",                                             command_run        },
    { "chat",       "hold a conversation",                                         command_chat       },
    { "info",       "show what a GGUF file holds, and check it",                   command_info       },
    { "tokenize",   "show the token ids of a text",                                command_tokenize   },
    { "logits",     "show the likeliest next tokens after a prompt",               command_logits     },
    { "perplexity", "measure how well a model predicts a text",                    command_perplexity },
    { "plan",       "show every byte that a run will use, before it runs",         command_plan       },
    { "bench",      "measure prompt and generation speed, load time and memory",   command_bench      },
};

static void help(FILE *out) {
    fprintf(out, "usage: arenite COMMAND [arguments]\n\n");
    for (size_t i = 0; i < sizeof commands/sizeof *commands; i++) fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\narenite COMMAND --help says more. arenite --version prints the version.\n");
}

int main(int argc, char **argv) {
    if (argc < 2) { help(stderr); return 2; }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) { help(stdout); return 0; }
    if (!strcmp(argv[1], "--version")) { printf("arenite %s (interface of ggml %s)\n", ARENITE_VERSION, ggml_version()); return 0; }
    for (size_t i = 0; i < sizeof commands/sizeof *commands; i++) {
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    }
    return usage("no such command: %s (see arenite --help)", argv[1]);
}
