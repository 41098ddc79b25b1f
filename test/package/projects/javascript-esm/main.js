import { createRequire } from 'node:module';
import express from 'express';
import * as root from 'transfer-callbacks';
import * as testing from 'transfer-callbacks/testing';

const require = createRequire(import.meta.url);
const { run } = require('../run.cjs');
// A library of the app's may be CommonJS: what it throws is of the other copy of the class.
const { RetryLater } = require('transfer-callbacks');

run({ root, testing, RetryLater, app: (router) => express().post('/callbacks', router) });
