import express from 'express';
import { transferCallbackRouter } from 'transfer-callbacks';
import { options } from './options.ts';

const app = express();
app.post('/callbacks/transfers', transferCallbackRouter(options));
app.use(express.json()); // After the router: for the other routes.
app.listen(Number(process.env.PORT ?? 3000));
