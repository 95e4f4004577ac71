-- | The mailbox of the workloads in which messages queue up: a @TQueue@.
module Queue (Queue, newQueue, push, pop) where

import Control.Concurrent.STM (TQueue, atomically, newTQueueIO, readTQueue, writeTQueue)

newtype Queue a = Queue (TQueue a)

newQueue :: IO (Queue a)
newQueue = Queue <$> newTQueueIO

push :: Queue a -> a -> IO ()
push (Queue queue) message = atomically (writeTQueue queue message)
{-# INLINE push #-}

pop :: Queue a -> IO a
pop (Queue queue) = atomically (readTQueue queue)
{-# INLINE pop #-}
