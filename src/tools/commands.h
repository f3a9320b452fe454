#ifndef COMMANDS_H
#define COMMANDS_H
/* One function a subcommand: its arguments, without its name; returns the exit code. */

int command_run       (int argc, char **argv);
int command_chat      (int argc, char **argv);
int command_info      (int argc, char **argv);
int command_tokenize  (int argc, char **argv);
int command_logits    (int argc, char **argv);
int command_perplexity(int argc, char **argv);
int command_plan      (int argc, char **argv);
int command_bench     (int argc, char **argv);
int command_quantize  (int argc, char **argv);

#endif
