#!/usr/bin/env node
import { program } from './commands.js';
import { runProgram } from '../../../src/cli/program.js';

runProgram(program);
