const express = require('express');
const root = require('transfer-callbacks');
const testing = require('transfer-callbacks/testing');
const { run } = require('../run.cjs');

const app = (router) => express().use(express.json()).use('/callbacks', router);
run({ root, testing, RetryLater: root.RetryLater, app });
