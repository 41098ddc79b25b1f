import 'reflect-metadata';
import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { transferCallbackReceiver, transferCallbackRouter, type TransferCallbackReceiver } from 'transfer-callbacks';
import { options } from './options.ts';

const { store, verify, onSuccess, onFailed } = options;

/** Stands for a service of yours. */
@Injectable()
class Payouts {
  readonly markPaid = onSuccess;
  readonly refund = onFailed;
}

@Injectable()
class TransferCallbacks implements OnModuleDestroy {
  // Nest's starter makes what has no type `any`. That of a SQL store is needed, too, or the handlers have no `tx`:
  // `readonly store: SqlStore<EntityManager>` with TypeORM. `onModuleInit` awaits its `migrate()`.
  readonly receiver: TransferCallbackReceiver;

  // Nest's own build needs no `@Inject`.
  constructor(@Inject(Payouts) payouts: Payouts) {
    this.receiver = transferCallbackReceiver({
      store,
      onSuccess: (callback) => payouts.markPaid(callback),
      onFailed: () => payouts.refund(),
    });
  }

  /** Lets running handlers finish before Nest closes the server. */
  async onModuleDestroy(): Promise<void> {
    await this.receiver.close();
  }
}

@Module({ providers: [Payouts, TransferCallbacks] })
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // SIGTERM closes the app.
const { receiver } = app.get(TransferCallbacks);
app.use('/callbacks/transfers', transferCallbackRouter({ receiver, verify })); // Before `listen`, which adds Nest's body parsers.
await app.listen(Number(process.env.PORT ?? 3000));
