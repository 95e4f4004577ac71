-- | @spawn@: how long a thread takes to start and to end, and how much memory it holds while it
-- waits.
--
-- Invariant: a thread counts itself ended as its last action; the runtime does not report how many
-- threads there are.
module Spawn (spawn) where

import Control.Concurrent (forkIO)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar)
import Control.Monad (forM_)
import Data.Array.Base (unsafeRead, unsafeWrite)
import Data.Array.IO (IOArray, newArray)

import Measure

spawn :: Int -> IO ()
spawn n = do
  started <- newGate n
  ended <- newGate n
  unused <- newEmptyMVar
  handles <- newArray (0, n - 1) unused :: IO (IOArray Int (MVar ()))
  holding 0
  spawnClock <- now
  forM_ [0 .. n - 1] $ \i -> do
    mailbox <- newEmptyMVar
    unsafeWrite handles i mailbox
    forkIO (count started >> takeMVar mailbox >> count ended)
  wait started
  spawning <- subtract spawnClock <$> now
  holding n

  endClock <- now
  forM_ [0 .. n - 1] $ \i -> unsafeRead handles i >>= \mailbox -> putMVar mailbox ()
  wait ended
  ending <- subtract endClock <$> now
  let each total = total / fromIntegral n
  printMetrics
    [ ("ns_per_spawn", each spawning)
    , ("ns_per_teardown", each ending)
    ]
