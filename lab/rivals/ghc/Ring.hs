-- | @ring@: tokens go round a ring of threads, each of which knows only its neighbour.
module Ring (ring) where

import Control.Concurrent (forkIO)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar)
import Control.Exception (evaluate)
import Control.Monad (foldM, forM_, void)
import Data.Array (listArray, (!))

import Measure

ring :: Int -> Int -> Int -> IO ()
ring n m tokens = do
  started <- newGate n
  arrived <- newGate tokens
  setup <- now
  -- The ring is built backwards: the last thread is started first and gets the first one's
  -- mailbox at the end.
  told <- newEmptyMVar
  lastMailbox <- newEmptyMVar
  void $ forkIO $ takeMVar told >>= pass started arrived lastMailbox
  mailboxes <- foldM (\known _ -> extend started arrived known) [lastMailbox] [2 .. n]
  putMVar told (head mailboxes)
  wait started

  nodes <- evaluate (listArray (0, n - 1) mailboxes)
  clock <- now
  forM_ [0 .. tokens - 1] $ \token -> putMVar (nodes ! (token * n `div` tokens)) (n * m)
  wait arrived
  ended <- now
  printMetrics
    [ ("ns_per_hop", (ended - clock) / (fromIntegral n * fromIntegral m * fromIntegral tokens))
    , ("ms_with_setup", (ended - setup) / 1e6)
    ]

-- | Starts one more thread in front of those started before.
extend :: Gate -> Gate -> [MVar Int] -> IO [MVar Int]
extend started arrived known = do
  mailbox <- newEmptyMVar
  void $ forkIO $ pass started arrived mailbox (head known)
  pure (mailbox : known)

-- | Passes tokens on; the number in a token is how many hops it has left.
pass :: Gate -> Gate -> MVar Int -> MVar Int -> IO ()
pass started arrived mailbox neighbour = count started >> loop
  where
    loop = do
      hops <- takeMVar mailbox
      if hops == 0
        then count arrived
        else putMVar neighbour $! hops - 1
      loop
