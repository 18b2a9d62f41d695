#!/usr/bin/env node
// Starts the program of this platform. Standard streams are inherited, so that MCP over stdio passes through untouched.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { isatty } = require('node:tty');

const platform = `${process.platform}-${process.arch}`;

function findProgram() {
  const file = process.platform === 'win32' ? 'toolyard.exe' : 'toolyard';
  try {
    return require.resolve(`@toolyard/${platform}/bin/${file}`);
  } catch {
    console.error(`error: the package @toolyard/${platform} is not installed`);
    console.error('  hint: there is none for every platform; install with optional dependencies (no --omit=optional), or build from source');
    process.exit(1);
  }
}

const program = spawn(findProgram(), process.argv.slice(2), { stdio: 'inherit' });

// The terminal sends Ctrl-C to both processes. Passing it on as well would count as a second one, which stops at once. A process
// whose input is no terminal is usually sent signals by `kill` or a service manager, to the launcher only, so they are passed on;
// in a terminal with redirected input, Ctrl-C therefore counts twice.
// (Not `process.stdin.isTTY`: looking at `process.stdin` makes the pipe that the program inherits non-blocking.)
const isAtTerminal = isatty(0);
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGTERM', 'SIGUSR1', 'SIGUSR2']) {
  const isFromTerminal = isAtTerminal && ['SIGINT', 'SIGQUIT', 'SIGHUP'].includes(signal);
  try {
    process.on(signal, () => isFromTerminal || program.kill(signal));
  } catch {
    // Not a signal of this platform.
  }
}

program.on('error', (error) => {
  console.error(`error: failed to start ${program.spawnfile}: ${error.message}`);
  process.exit(1);
});
program.on('exit', (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // End in the same way, so that the parent sees the signal; where that is not possible, with the code of shells.
  process.removeAllListeners(signal);
  process.exitCode = 128 + (constants.signals[signal] ?? 0);
  process.kill(process.pid, signal);
});
