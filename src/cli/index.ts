#!/usr/bin/env node
import { program } from './commands.js';
import { runProgram } from './program.js';

runProgram(program);
