import 'reflect-metadata';
import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import { options } from './options.ts';

const { store, verify, onSuccess, onFailed } = options;

/** Stands for a service of yours. */
@Injectable()
class Payouts {
  readonly markPaid = onSuccess;
  readonly refund = onFailed;
}

const makeReceiver = (payouts: Payouts) =>
  transferCallbackReceiver({
    store,
    onSuccess: (callback) => payouts.markPaid(callback),
    onFailed: () => payouts.refund(),
  });

@Injectable()
class TransferCallbacks implements OnModuleDestroy {
  // In Nest's starter a property without a type is `any`. This type has the callbacks of a `schema`, and the `tx` of a
  // store. A store in a property needs a type, too, or the handlers have no `tx`: with TypeORM
  // `SqlStore<EntityManager>`. `onModuleInit` awaits its `migrate()`.
  readonly receiver: ReturnType<typeof makeReceiver>;

  // Nest's own build needs no `@Inject`.
  constructor(@Inject(Payouts) payouts: Payouts) {
    this.receiver = makeReceiver(payouts);
  }

  /** Lets running handlers finish before Nest closes the server. */
  async onModuleDestroy(): Promise<void> {
    await this.receiver.close();
  }
}

// Nest runs the `onModuleDestroy` of one module's providers concurrently. A database among them would be disconnected
// while handlers run: give it a module of its own, which this one imports.
@Module({ providers: [Payouts, TransferCallbacks] })
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // SIGTERM closes the app.
const { receiver } = app.get(TransferCallbacks);
app.use('/callbacks/transfers', transferCallbackRouter({ receiver, verify })); // Before `listen`, which adds Nest's body parsers.
await app.listen(Number(process.env.PORT ?? 3000));
